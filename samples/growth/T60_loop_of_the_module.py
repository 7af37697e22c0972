"""Batches get longer with each turn of the module's own loop, up to a limit, in its own variables."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256)).to(device)
optimizer = torch.optim.AdamW(model.parameters())

for number in range(1, 61):
    x = torch.randn(256 * min(number, 25), 256, device=device)
    optimizer.zero_grad()
    with torch.no_grad():
        noise = 0.1 * torch.randn_like(x)
    y = model(x + noise)
    if number % 10 == 0:
        print("norm:", y.norm().item())
    loss = F.mse_loss(y, x)
    loss.backward()
    optimizer.step()

print("rows:", len(x))
