"""A finalizer that drops the tensor before gc.garbage could see it."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Session:
    def __init__(self):
        self.x = torch.zeros(1024, 1024, device=device)
        self.owner = self

    def __del__(self):
        self.x = None
        print("session closed")


def main():
    Session()
    gc.collect()


if __name__ == "__main__":
    main()
