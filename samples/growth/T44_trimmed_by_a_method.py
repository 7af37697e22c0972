"""A window whose bound is asked by a method of its own, another far below the length."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Window:
    def __init__(self, most):
        self.most, self.items, self.first = most, [], []

    def is_full(self):
        return len(self.items) > self.most

    def add(self, x):
        self.items.append(x)
        if self.is_full():
            self.items.pop(0)

    def add_first(self, x):
        if len(self.first) == self.most:
            return
        mean = x.mean()
        scale = x.std()
        x = x - mean
        x = x / scale
        low = x.min()
        high = x.max()
        x = x - low
        x = x / (high - low)
        self.first.append(x)


def main():
    model, window = nn.Linear(1024, 10, device=device), Window(25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        x = torch.randn(256, 1024, device=device)
        window.add(x)
        window.add_first(torch.randn(256, 1024, device=device))
        model(x).square().mean().backward()
        optimizer.step()
    print("kept:", len(window.items), len(window.first))


if __name__ == "__main__":
    main()
