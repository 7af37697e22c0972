"""A hook on an activation captures that activation: C++ holds the cycle, and nobody frees it."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def watched(model, x):
    hidden = torch.tanh(model(x))  # LEAK
    hidden.register_hook(lambda grad: grad * (hidden.detach() != 0))  # HELD
    return hidden


def main():
    model = nn.Linear(16, 1024, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        torch.manual_seed(step)
        loss = watched(model, torch.randn(256, 16, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40")


if __name__ == "__main__":
    main()
