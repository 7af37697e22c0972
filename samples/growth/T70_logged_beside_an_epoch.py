"""Losses of an epoch are gathered with their graphs, and the newest is logged besides."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Log:
    def __init__(self):
        self.loss = None


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 8)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log, newest = Log(), {}
    for epoch in range(4):
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            model(torch.randn(64, 64, device=device)).square().mean().backward()
            optimizer.step()
            loss = model(torch.randn(64, 64, device=device)).mean()
            log.loss = newest["loss"] = loss
            losses.append(loss)
        mean = torch.stack(losses).mean().item()
    print("epochs: 4, finite:", mean == mean)


if __name__ == "__main__":
    main()
