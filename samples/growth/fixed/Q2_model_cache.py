"""The model caches its positions by step, on itself."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1024, 10)
        self.cache = {}

    def positions(self, step):
        if step not in self.cache:
            self.cache.clear()
            grid = torch.arange(256 * 1024, device=device).view(256, 1024)
            self.cache[step] = torch.sin(grid + step)
        return self.cache[step]

    def forward(self, x, step):
        return self.layer(x + self.positions(step))


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        loss = model(torch.ones(256, 1024, device=device), step).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40")


if __name__ == "__main__":
    main()
