"""A megabyte a step is kept beside activations that come and go by tens."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    model = nn.Sequential(nn.Linear(64, 4096), nn.Tanh(), nn.Linear(4096, 64)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    torch.manual_seed(0)
    for step in range(40):
        x = torch.randn(64 * (1 + step * 5 % 7), 64, device=device)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        noise = torch.randn(256, 1024, device=device)  # LEAK
        kept.append(noise)  # HELD
    print("steps: 40")


if __name__ == "__main__":
    main()
