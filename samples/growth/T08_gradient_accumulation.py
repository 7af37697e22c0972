"""Gradients of four micro-batches are added up before each step: kept on purpose."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        for _ in range(4):
            x = torch.randn(64, 512, device=device)
            loss = F.mse_loss(model(x), x) / 4
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("steps: 30, micro-batches: 120")


if __name__ == "__main__":
    main()
