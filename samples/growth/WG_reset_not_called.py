"""The metric of validation has a reset() that nobody calls; that of training is a number."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Outputs:
    def __init__(self):
        self.parts = []

    def update(self, output):
        self.parts.append(output)  # HELD

    def compute(self):
        return torch.stack([part.mean() for part in self.parts]).mean().item()

    def reset(self):
        self.parts = []


def main():
    model, outputs = nn.Linear(512, 512, device=device), Outputs()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        for _ in range(10):
            model(torch.randn(64, 512, device=device)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                outputs.update(model(torch.randn(512, 512, device=device)))  # LEAK
        mean = outputs.compute()
    print("mean:", mean == mean)


if __name__ == "__main__":
    main()
