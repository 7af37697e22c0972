"""A second iterator over the batches is read for its first one only."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def batches(count):
    for step in range(count):
        torch.manual_seed(step)
        yield torch.randn(4096, 64, device=device)


def main():
    model = nn.Linear(64, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training, preview = batches(80), batches(1)
    print("batch:", tuple(next(preview).shape))
    for x in training:
        optimizer.zero_grad()
        F.cross_entropy(model(x), x.argmax(dim=1) % 10).backward()
        optimizer.step()
    print("steps: 80")


if __name__ == "__main__":
    main()
