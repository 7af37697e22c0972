"""Batches from 32 to 512 rows, in no order."""

import random

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    random.seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(50):
        x = torch.randn(random.randrange(32, 512), 256, device=device)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
    print("steps: 50")


if __name__ == "__main__":
    main()
