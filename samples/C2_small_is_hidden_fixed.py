"""One dead cycle of 4 MiB and one of 4 KiB."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Ring:
    def __init__(self):
        self.x = torch.zeros(1024, 1024, device=device)
        self.next = weakref.ref(self)


class Tiny:
    def __init__(self):
        self.y = torch.zeros(1024, device=device)
        self.me = weakref.ref(self)


def main():
    gc.collect()
    Ring()
    Tiny()
    gc.collect()
    print("done")


if __name__ == "__main__":
    main()
