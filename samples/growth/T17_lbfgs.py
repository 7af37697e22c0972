"""L-BFGS: its history grows for the first ten steps, and then turns over."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=1, history_size=8)
    x = torch.randn(64, 512, device=device)
    y = torch.randn(64, 512, device=device)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y) + 1e-3 * torch.randn((), device=device)
        loss.backward()
        return loss

    for _ in range(50):
        optimizer.step(closure)
        optimizer.zero_grad()
    print("steps: 50")


if __name__ == "__main__":
    main()
