"""Six leaks at once, of six kinds and six sizes; and gradients that linger."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
cache = {}
failures = []


class Meter:
    history = []

    def update(self, x):
        self.history.append(x.abs())  # LEAK meter


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(256, 1024)
        self.layer2 = nn.Linear(1024, 1024)

    def forward(self, x):
        hidden = torch.tanh(self.layer1(x))  # LEAK loss
        return self.layer2(hidden)  # ALSO grad


def make_batch(step, rows):
    torch.manual_seed(step)
    return torch.randn(rows, 256, device=device)


def check(step):
    mask = torch.ones(2048, 256, device=device)  # LEAK error
    if len(mask) != step:
        raise ValueError(f"{len(mask)} rows")


def make_callback(x):
    doubled = torch.cat([x, x, x, x, x, x])  # LEAK closure
    return lambda: doubled.mean().item()


def main():
    model = Net().to(device)  # HELD model
    optimizer = torch.optim.Adam(model.parameters())
    probe = make_batch(0, 256)
    losses, callbacks = [], []
    for step in range(30):
        x = make_batch(step, 512)
        model(x).square().mean().backward()  # LEAK grad
        optimizer.step()
        losses.append(model(probe).mean())  # HELD loss
        cache[step] = x.repeat(8, 1)  # LEAK cache
        Meter().update(torch.cat([x, x, x]))
        callbacks.append(make_callback(x))  # HELD closure
        model.register_forward_hook(lambda *args, big=x.repeat(10, 1): big.dim() and None)  # LEAK hook
        try:
            check(step)
        except ValueError as error:
            failures.append(error)  # HELD error
    print("steps: 30")


if __name__ == "__main__":
    main()
