"""An exponential average of the weights, updated in place and used in evaluations."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


@torch.no_grad()
def update(average, model, decay=0.99):
    for kept, new in zip(average.parameters(), model.parameters()):
        kept.mul_(decay).add_(new, alpha=1 - decay)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(40):
        x = torch.randn(64, 256, device=device)
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        update(average, model)
        if step % 5 == 4:
            average(x)
    print("steps: 40")


if __name__ == "__main__":
    main()
