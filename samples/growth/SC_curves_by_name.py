"""A list is made for each name that is not known yet; the names are few, the lists grow."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
NAMES = ["loss", "norm", "bias", "rate", "mean"]


class Curves:
    def __init__(self):
        self.curves = {}

    def note(self, name, value):
        if name not in self.curves:
            self.curves[name] = []  # ALSO
        self.curves[name].append(value)  # HELD


def main():
    torch.manual_seed(0)
    model, curves = nn.Linear(1024, 10, device=device), Curves()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(40):
        x = torch.randn(256, 1024, device=device)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        for name in NAMES:
            curves.note(name, torch.rand(64, 1024, device=device))  # LEAK
        optimizer.step()
    print("curves:", len(curves.curves))


if __name__ == "__main__":
    main()
