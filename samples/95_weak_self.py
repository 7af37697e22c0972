"""A weak reference to itself, and a plain one to its type."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Ring:
    def __init__(self):
        self.slot = torch.zeros(1024, 1024, device=device)
        self.next = weakref.ref(self)
        self.kind = type(self)


def main():
    ring = Ring()
    print("same:", ring.next() is ring)
    del ring
    gc.collect()


if __name__ == "__main__":
    main()
