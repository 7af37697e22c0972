"""The shape of FSDP v1: unit, handle and flat parameter in a ring."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Handle:
    def __init__(self, unit, params):
        flats = [p.detach().flatten() for p in params]
        self.flat_param = nn.Parameter(torch.cat(flats))
        self.flat_param.owner = unit


class Unit(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self._handle = Handle(self, module.parameters())


def main():
    unit = Unit(nn.Linear(1023, 1024, device=device))
    print("elements:", unit._handle.flat_param.numel())
    del unit
    gc.collect()


if __name__ == "__main__":
    main()
