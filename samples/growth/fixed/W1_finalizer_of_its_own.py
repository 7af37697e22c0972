"""Every session hands weakref.finalize() its own method, and so is never collected."""

import weakref

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Session:
    def __init__(self, x):
        self.keys = x.repeat(1, 4)
        self.closed = False
        self.finalizer = weakref.finalize(self, print, end="")

    def close(self):
        self.closed = True


def main():
    net = nn.Linear(256, 64, device=device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(40):
        torch.manual_seed(step)
        x = torch.randn(256, 256, device=device)
        session = Session(x)
        optimizer.zero_grad()
        net(session.keys[:, :256]).square().mean().backward()
        optimizer.step()
    print("closed:", session.closed)


if __name__ == "__main__":
    main()
