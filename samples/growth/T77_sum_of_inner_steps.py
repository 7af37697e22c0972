"""A sum of the losses of twenty inner steps, for the one step of the outer optimizer behind them."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Task:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)).to(device)
        self.adapter = nn.Linear(64, 64).to(device)
        self.outer = torch.optim.Adam(self.model.parameters(), lr=0.001)
        self.inner = torch.optim.SGD(self.adapter.parameters(), lr=0.01)

    def adapt(self):
        x = torch.randn(512, 64, device=device)
        fit = (self.adapter(x) - x).square().mean()
        self.inner.zero_grad()
        fit.backward()
        self.inner.step()
        return (self.model(x) - self.adapter(x).detach()).square().mean()


def with_their_sum(task):
    for step in range(6):
        total = 0
        for _ in range(20):
            total = total + task.adapt()
        task.outer.zero_grad()
        total.backward()
        task.outer.step()
        print("step:", step, "finite:", bool(total.isfinite()))


def with_their_mean(task):
    total = 0.0
    for _ in range(20):
        total += task.adapt()
    task.outer.zero_grad()
    loss = total / 20
    loss.backward()
    task.outer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    task = Task()
    with_their_sum(task)
    for step in range(6):
        print("step:", step, "finite:", with_their_mean(task) < 1e9)


if __name__ == "__main__":
    main()
