"""Adam, then SGD with momentum, then AdamW for one model: the old state goes with its optimizer."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def train(model, optimizer):
    for _ in range(40):
        x = torch.randn(64, 512, device=device)
        F.mse_loss(model(x), x).backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)).to(device)
    train(model, torch.optim.Adam(model.parameters()))
    train(model, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))
    train(model, torch.optim.AdamW(model.parameters(), amsgrad=True))
    print("steps: 120")


if __name__ == "__main__":
    main()
