"""Activations are computed again in backward (torch.utils.checkpoint)."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(3))

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = x + checkpoint(block, x, use_reentrant=i == 1)
        return x


def main():
    torch.manual_seed(0)
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(30):
        x = torch.randn(64, 256, device=device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
    print("steps: 30")


if __name__ == "__main__":
    main()
