"""The backbone is trained from step 20 on: its gradients and its state appear then, once."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
    head = nn.Linear(256, 10).to(device)
    backbone.requires_grad_(False)
    optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()])
    for step in range(50):
        if step == 20:
            backbone.requires_grad_(True)
        x = torch.randn(64, 256, device=device)
        y = torch.randint(0, 10, (64,), device=device)
        optimizer.zero_grad()
        loss = F.cross_entropy(head(backbone(x)), y)
        loss.backward()
        optimizer.step()
    print("steps: 50")


if __name__ == "__main__":
    main()
