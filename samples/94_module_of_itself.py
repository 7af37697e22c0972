"""A module set as its own submodule, for a shared name."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1024, 1024, device=device))
        self.model = self


def main():
    backbone = Backbone()
    print("parameters:", len(list(backbone.parameters())))
    del backbone
    gc.collect()


if __name__ == "__main__":
    main()
