"""A module whose forward is replaced by another method."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Encoder(nn.Module):
    def __init__(self, fast):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1024, 1024, device=device))
        if fast:
            self.forward = self.forward_fast

    def forward(self, x):
        return x @ self.w

    def forward_fast(self, x):
        return x[:1] @ self.w


@torch.no_grad()
def main():
    encoder = Encoder(fast=True)
    print(tuple(encoder(torch.ones(8, 1024, device=device)).shape))
    del encoder.forward
    del encoder
    gc.collect()


if __name__ == "__main__":
    main()
