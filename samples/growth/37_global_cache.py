"""A dictionary of the module, keyed by step, that never forgets."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
cache = {}


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)  # LEAK


def cached_features(step):
    if step not in cache:
        cache[step] = features(step)  # HELD
    return cache[step]


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        loss = model(cached_features(step)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40")


if __name__ == "__main__":
    main()
