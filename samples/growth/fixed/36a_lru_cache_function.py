"""lru_cache without a size keeps one table for each step."""

import functools

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


@functools.lru_cache(maxsize=4)
def positions(step):
    grid = torch.arange(256 * 1024, device=device)
    return (grid * (step + 1)).float().view(256, 1024).sin()


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        loss = model(positions(step)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40")


if __name__ == "__main__":
    main()
