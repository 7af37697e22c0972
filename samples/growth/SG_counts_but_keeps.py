"""A pool counts its first states, and compares their number, but keeps all that come after."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Pool:
    def __init__(self, size):
        self.size, self.count, self.states = size, 0, []

    def put(self, step):
        if self.count < self.size:
            self.count += 1
        torch.manual_seed(step)
        self.states.append(torch.randn(256, 1024, device=device))  # LEAK
        return self.states[-1]


def main():
    model, pool = nn.Linear(1024, 10, device=device), Pool(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        optimizer.zero_grad()
        model(pool.put(step)).square().mean().backward()
        optimizer.step()
    print("counted:", pool.count)


if __name__ == "__main__":
    main()
