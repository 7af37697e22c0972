"""A comprehension over the list, which leaves out all but the newest."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class History:
    def __init__(self):
        self.states = []

    def put(self, step):
        torch.manual_seed(step)
        self.states.append(torch.randn(256, 1024, device=device))
        self.states = [x for x in self.states if x is self.states[-1]]


def main():
    model, history = nn.Linear(1024, 10, device=device), History()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        optimizer.zero_grad()
        history.put(step)
        model(history.states[-1]).square().mean().backward()
        optimizer.step()
    print("kept:", len(history.states))


if __name__ == "__main__":
    main()
