"""Sequences get longer every ten steps up to a limit; each is freed with its step."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(60):
        length = min(16 * (1 + step // 10), 64)
        x = torch.randn(16, length, 64, device=device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
    print("steps: 60, length:", length)


if __name__ == "__main__":
    main()
