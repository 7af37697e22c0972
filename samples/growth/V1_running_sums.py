"""Losses are summed up by name, each with its graph, and rows are added with +=."""

from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 512)
        self.down = nn.Linear(512, 10)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))  # LEAK graph


class Meters:
    def __init__(self):
        self.sums = defaultdict(float)
        self.rows = []

    def add(self, losses):
        for name, value in losses.items():
            self.sums[name] += value  # HELD sums

    def show(self, rows):
        self.rows += [rows]  # HELD rows


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meters = Meters()
    for step in range(26):
        torch.manual_seed(step)
        x = torch.randn(512, 16, device=device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), x.argmax(dim=1) % 10)
        loss.backward(retain_graph=True)
        optimizer.step()
        meters.add({"loss": loss})
        meters.show(x.repeat(1, 16))  # LEAK rows
    print("rows:", len(meters.rows), "sums:", *meters.sums)


if __name__ == "__main__":
    main()
