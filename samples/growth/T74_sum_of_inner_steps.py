"""A sum of the losses of twenty inner steps, for the one step of the outer optimizer behind them."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)).to(device)
    adapter = nn.Linear(64, 64).to(device)
    outer = torch.optim.Adam(model.parameters(), lr=0.001)
    inner = torch.optim.SGD(adapter.parameters(), lr=0.01)
    for step in range(6):
        total = 0
        for _ in range(20):
            x = torch.randn(512, 64, device=device)
            fit = (adapter(x) - x).square().mean()
            inner.zero_grad()
            fit.backward()
            inner.step()
            total = total + (model(x) - adapter(x).detach()).square().mean()
        outer.zero_grad()
        total.backward()
        outer.step()
        print("step:", step, "finite:", bool(total.isfinite()))


if __name__ == "__main__":
    main()
