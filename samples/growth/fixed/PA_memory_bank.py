"""Negatives of all steps are kept: torch.cat() makes the bank longer with each."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(64, 256)
        self.bank = torch.zeros(0, 256, device=device)

    def forward(self, x):
        z = self.project(x)
        self.bank = torch.cat([self.bank, z.detach()])[-4096:].clone()
        return (z * self.bank.mean(dim=0)).sum() + z.square().mean()


def main():
    torch.manual_seed(0)
    model = Contrast().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for step in range(40):
        loss = model(torch.randn(1024, 64, device=device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40, rows in the bank:", len(model.bank) > 0)


if __name__ == "__main__":
    main()
