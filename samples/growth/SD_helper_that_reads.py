"""What is kept is handed to functions that only look at it, one of which empties something else."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)  # LEAK


def mean_of(items, sums):
    if len(items) >= 10:
        sums.clear()
        sums.append(sum(float(item.mean()) for item in items[-10:]) / 10)


class History:
    def __init__(self):
        self.items, self.sums = [], []

    def add(self, x):
        self.items.append(x)  # HELD
        mean_of(self.items, self.sums)
        count = len(self.items)
        if count > 10:
            self.sums = self.sums[-10:]


def main():
    model, history = nn.Linear(1024, 10, device=device), History()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        optimizer.zero_grad()
        x = features(step)
        history.add(x)
        model(x).square().mean().backward()
        optimizer.step()
    print("sums:", len(history.sums))


if __name__ == "__main__":
    main()
