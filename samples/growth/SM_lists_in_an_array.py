"""Outputs by class, in lists that an array of NumPy's has: it has four places, the lists have no end."""

import numpy as np
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Classes:
    def __init__(self, count):
        self.rows = np.empty(count, dtype=object)
        for label in range(count):
            self.rows[label] = []  # HELD

    def add(self, label, output):
        self.rows[label].append(output)


def main():
    model, classes = nn.Linear(512, 512, device=device), Classes(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(60):
        optimizer.zero_grad()
        output = model(torch.randn(512, 512, device=device))  # LEAK
        output.square().mean().backward()
        optimizer.step()
        classes.add(step % 4, output.detach())
    print("classes:", len(classes.rows))


if __name__ == "__main__":
    main()
