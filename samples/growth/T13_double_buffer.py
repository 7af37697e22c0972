"""The next batch is prepared while this one is used: two live, never three."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def load(step):
    torch.manual_seed(step)
    return torch.randn(512, 1024).to(device)


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    following = load(0)
    for step in range(40):
        x, following = following, load(step + 1)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    print("steps: 40")


if __name__ == "__main__":
    main()
