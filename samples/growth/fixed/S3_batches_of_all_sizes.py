"""Batches of changing size are kept."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    rows = 128 + 64 * (step * 7 % 5)
    return torch.randn(rows, 1024, device=device)


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for step in range(50):
        x = features(step)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        kept.append(len(x))
    print("steps: 50")


if __name__ == "__main__":
    main()
