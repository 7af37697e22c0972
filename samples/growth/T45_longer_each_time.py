"""Sequences get longer with each step, up to a limit, and nothing of a step is kept."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(60):
        x = torch.randn(4, 64 * (1 + min(step, 25)), 512, device=device)
        optimizer.zero_grad(set_to_none=True)
        y = model(x)
        loss = F.mse_loss(y, x)
        loss.backward()
        optimizer.step()
    print("steps: 60, length:", x.shape[1])


if __name__ == "__main__":
    main()
