"""A module's variable gets longer: what it was comes by a function, what is set by another one."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
history = torch.empty(0, 512, device=device)


def so_far():
    return history


def add(x):
    global history
    history = torch.cat([so_far(), x])  # LEAK


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(40):
        x = torch.randn(512, 512, device=device)
        optimizer.zero_grad(set_to_none=True)
        F.mse_loss(model(x), x).backward()
        optimizer.step()
        add(x)
    print("rows:", len(history))


if __name__ == "__main__":
    main()
