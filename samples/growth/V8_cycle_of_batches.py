"""itertools.cycle() goes around the batches, and keeps each of its first round."""

import itertools

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def batches():
    for step in range(60):
        torch.manual_seed(step)
        yield torch.randn(4096, 64, device=device)  # LEAK


def main():
    model = nn.Linear(64, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    endless = itertools.cycle(batches())  # HELD
    for step in range(40):
        x = next(endless)
        F.cross_entropy(model(x), x.argmax(dim=1) % 10).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps:", step + 1)


if __name__ == "__main__":
    main()
