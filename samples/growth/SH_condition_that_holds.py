"""A comprehension over the list, whose condition leaves nothing out of it: it chooses between two values."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class History:
    def __init__(self):
        self.states = []

    def put(self, step):
        torch.manual_seed(step)
        self.states.append(torch.randn(256, 1024, device=device))  # LEAK
        self.states = [x if x.requires_grad else x.detach() for x in self.states]


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
