"""A function with a cache returns one list for all; the outputs pile up in it."""

import functools

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


@functools.lru_cache
def registry():  # HELD
    return []


def main():
    torch.manual_seed(0)
    model = nn.Linear(256, 256).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        y = model(torch.randn(256, 256, device=device))  # LEAK
        y.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        registry().append(y.detach())


if __name__ == "__main__":
    main()
