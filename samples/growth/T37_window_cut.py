"""The last twenty-five outputs, by a slice that drops the others."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    window = []
    for step in range(60):
        x = torch.randn(512, 512, device=device)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        window.append(x)
        window = window[-25:]
    print("steps: 60")


if __name__ == "__main__":
    main()
