"""The list of the cached function has the mean of each output, as a number."""

import functools

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


@functools.lru_cache
def registry():
    return []


def main():
    torch.manual_seed(0)
    model = nn.Linear(256, 256).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        y = model(torch.randn(256, 256, device=device))
        y.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        registry().append(y.mean().item())


if __name__ == "__main__":
    main()
