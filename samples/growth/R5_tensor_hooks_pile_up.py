"""A hook on the weight is registered in every step and captures the batch."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)  # LEAK


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        x = features(step)
        model.weight.register_hook(lambda grad, x=x: grad * (len(x) > 0))  # HELD
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40")


if __name__ == "__main__":
    main()
