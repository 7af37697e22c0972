"""The length of what is kept is compared, but nothing is taken out."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)  # LEAK


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept, mean = [], 0.0
    for step in range(40):
        x = features(step)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        kept.append(x)  # HELD
        if len(kept) >= 10:
            mean = sum(float(item.mean()) for item in kept[-10:]) / 10
    print("steps: 40, means:", mean != 0.0)


if __name__ == "__main__":
    main()
