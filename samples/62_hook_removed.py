"""The hook captures its module, but its handle is removed."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1024, 1024, device=device))
        self.calls = 0
        self.handle = self.register_forward_hook(
            lambda module, args, out: self.count())

    def count(self):
        self.calls += 1

    def forward(self, x):
        return x @ self.weight


def main():
    probe = Probe()
    probe(torch.ones(1, 1024, device=device))
    probe.handle.remove()
    print("calls:", probe.calls)
    del probe
    gc.collect()


if __name__ == "__main__":
    main()
