"""Each step registers a forward hook that captures its batch, and removes none."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)


def watch(model, x):
    return model.register_forward_hook(lambda module, args, out: x.numel() and None)


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        x = features(step)
        handle = watch(model, x)
        loss = model(x).square().mean()
        handle.remove()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40")


if __name__ == "__main__":
    main()
