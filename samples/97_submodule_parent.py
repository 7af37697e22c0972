"""A block that is told its parent: nn.Module registers it."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self, parent):
        super().__init__()
        self.parent = parent


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1024, 1024, device=device))
        self.block = Block(self)


def main():
    net = Net()
    print("modules:", len(list(net.modules())))
    del net
    gc.collect()


if __name__ == "__main__":
    main()
