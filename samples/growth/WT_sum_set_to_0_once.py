"""A sum of inner steps that gets backward() behind each twenty of them, but is set to 0 only once."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh()).to(device)
    adapter = nn.Linear(64, 64).to(device)
    outer = torch.optim.SGD(model.parameters(), lr=0.001)
    inner = torch.optim.SGD(adapter.parameters(), lr=0.01)
    total = 0
    for step in range(4):
        for _ in range(20):
            x = torch.randn(256, 64, device=device)  # ALSO batch
            fit = (adapter(x) - x).square().mean()
            inner.zero_grad()
            fit.backward()
            inner.step()
            out = model(x)  # LEAK
            total = total + (out.mean(dim=1) - x.sum(dim=1)).square().mean()  # HELD
        outer.zero_grad()
        total.backward(retain_graph=True)
        outer.step()
        print("step:", step, "finite:", bool(total.isfinite()))


if __name__ == "__main__":
    main()
