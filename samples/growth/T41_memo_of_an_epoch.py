"""Features are computed in the first epoch and found again in all others."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Rows:
    def __init__(self, count):
        self.seeds = [17 * i for i in range(count)]
        self.memo = {}

    def features(self, index):
        if index not in self.memo:
            torch.manual_seed(self.seeds[index])
            self.memo[index] = torch.randn(256, 1024, device=device)
        return self.memo[index]


def main():
    model, rows = nn.Linear(1024, 10, device=device), Rows(30)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        for index in range(30):
            optimizer.zero_grad()
            model(rows.features(index)).square().mean().backward()
            optimizer.step()
    print("rows:", len(rows.memo))


if __name__ == "__main__":
    main()
