"""The tensor hangs three containers off the cycle."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Block:
    def __init__(self, parent):
        self.parent = weakref.ref(parent)


class Net:
    def __init__(self):
        self.block = Block(self)
        self.d = [{"k": (torch.zeros(1024, 1024, device=device),)}]


def main():
    net = Net()
    print("kept:", len(net.d))
    del net
    gc.collect()


if __name__ == "__main__":
    main()
