"""Parent and child with a weak reference back, made anew in each step."""

import weakref

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)


class Child:
    def __init__(self, parent, x):
        self.parent = weakref.ref(parent)
        self.x = x


class Parent:
    def __init__(self, step):
        self.children = [Child(self, features(step))]


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        parent = Parent(step)
        loss = model(parent.children[0].x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40")


if __name__ == "__main__":
    main()
