"""A script's own loops: inner steps are summed up, and autograd.grad() behind them takes the sum."""

import torch
from torch import autograd, nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)).to(device)
adapter = nn.Linear(64, 64).to(device)
weights = list(model.parameters())
inner = torch.optim.SGD(adapter.parameters(), lr=0.01)

for task in range(8):
    total = torch.zeros((), device=device)
    for _ in range(15):
        x = torch.randn(512, 64, device=device)
        fit = (adapter(x) - x).square().mean()
        inner.zero_grad()
        fit.backward()
        inner.step()
        total += (model(x) - adapter(x).detach()).square().mean()
    if task % 4 == 0:
        print("task:", task, "finite:", bool(total.isfinite()))
    gradients = autograd.grad(total / 15, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients):
            weight -= 0.01 * gradient
