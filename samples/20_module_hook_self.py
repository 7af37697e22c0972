"""A forward hook whose lambda captures the module it sits on."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(64, 1024, device=device)
        self.acts = []
        self.register_forward_hook(lambda m, i, out: self.store(out))

    def store(self, out):
        self.acts.append(out)

    def forward(self, x):
        return self.proj(x)


@torch.no_grad()
def main():
    probe = Probe()
    probe(torch.ones(1024, 64, device=device))
    print("acts:", len(probe.acts))
    del probe
    gc.collect()


if __name__ == "__main__":
    main()
