"""A cuda.core buffer held by a workspace that refers to itself."""

import gc

from cuda.core import Device


class Workspace:
    def __init__(self, device):
        self.scratch = device.memory_resource.allocate(4 << 20, stream=device.default_stream)
        self.parent = self


def main():
    device = Device(0)
    device.set_current()
    gc.collect()
    Workspace(device)
    gc.collect()
    print("workspaces made: 1")


if __name__ == "__main__":
    main()
