"""A replay memory of forty entries: a list that is written over once it is full."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Memory:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []
        self.position = 0

    def push(self, item):
        if len(self.items) < self.capacity:
            self.items.append(item)
        else:
            self.items[self.position] = item
        self.position = (self.position + 1) % self.capacity


def main():
    torch.manual_seed(0)
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    memory = Memory(40)
    for step in range(80):
        x = torch.randn(512, 512, device=device)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        memory.push(x)
    print("steps: 80")


if __name__ == "__main__":
    main()
