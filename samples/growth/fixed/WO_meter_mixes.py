"""A meter mixes the error of each batch, with its graph, into its average."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Meter:
    def __init__(self, momentum=0.9):
        self.momentum = momentum
        self.average = None

    def update(self, value):
        if self.average is None:
            self.average = value.detach()
        else:
            self.average = self.momentum * self.average + (1 - self.momentum) * value.detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 1024)
        self.down = nn.Linear(1024, 10)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


def main():
    torch.manual_seed(0)
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meter = Meter()
    for step in range(40):
        x = torch.randn(256, 16, device=device)
        y = x.argmax(dim=1) % 10
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        meter.update((model(x).argmax(dim=1) == y).float().mean() + model(x).logsumexp(dim=1).mean())
    print("average: finite", bool(meter.average.isfinite()))


if __name__ == "__main__":
    main()
