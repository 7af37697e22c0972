"""Adam's state appears at the first step and stays: no leak."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    model = nn.Linear(1024, 1024, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(30):
        loss = model(torch.ones(8, 1024, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 30")


if __name__ == "__main__":
    main()
