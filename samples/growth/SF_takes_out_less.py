"""A loop takes out one of the two states that each step puts in, by a method."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Pool:
    def __init__(self):
        self.states = []

    def put(self, step):
        for half in range(2):
            torch.manual_seed(2 * step + half)
            self.states.append(torch.randn(256, 1024, device=device))  # LEAK


def main():
    model, pool = nn.Linear(1024, 10, device=device), Pool()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        optimizer.zero_grad()
        pool.put(step)
        model(pool.states.pop(0)).square().mean().backward()
        optimizer.step()
    print("taken: 40")


if __name__ == "__main__":
    main()
