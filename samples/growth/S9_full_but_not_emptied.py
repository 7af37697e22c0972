"""Whether it is full is asked by a method, but nothing is taken out."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)  # LEAK


class Window:
    def __init__(self, most):
        self.most, self.items, self.ready = most, [], False

    def is_full(self):
        return len(self.items) > self.most

    def add(self, x):
        self.items.append(x)  # HELD
        if self.is_full():
            self.ready = True


def main():
    model, window = nn.Linear(1024, 10, device=device), Window(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        optimizer.zero_grad()
        x = features(step)
        window.add(x)
        model(x).square().mean().backward()
        optimizer.step()
    print("ready:", window.ready)


if __name__ == "__main__":
    main()
