"""States are kept from the sixth on: what is counted and compared says when it begins, not how many come."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class States:
    def __init__(self, first):
        self.first, self.seen, self.rows = first, 0, []

    def add(self, state):
        self.seen += 1
        if self.seen > self.first:
            self.rows = self.rows[-5:] + [state]


def main():
    model, states, seen = nn.Linear(512, 512, device=device), States(5), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def log():
        seen = [len(states.rows)]
        print("states:", seen.pop())
        seen.clear()

    for _ in range(60):
        optimizer.zero_grad()
        output = model(torch.randn(512, 512, device=device))
        output.square().mean().backward()
        optimizer.step()
        states.add(output.detach())
        seen.append(output.detach() * 2)
        del seen[:-5]
    log()


if __name__ == "__main__":
    main()
