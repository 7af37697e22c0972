"""Six leaks at once, of six kinds and six sizes; and gradients that linger."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
cache = {}
failures = []


class Meter:
    history = []

    def update(self, x):
        self.history[:] = [x.abs()]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(256, 1024)
        self.layer2 = nn.Linear(1024, 1024)

    def forward(self, x):
        hidden = torch.tanh(self.layer1(x))
        return self.layer2(hidden)


def make_batch(step, rows):
    torch.manual_seed(step)
    return torch.randn(rows, 256, device=device)


def check(step):
    mask = torch.ones(2048, 256, device=device)
    if len(mask) != step:
        raise ValueError(f"{len(mask)} rows")


def make_callback(x):
    doubled = torch.cat([x, x, x, x, x, x])
    mean = doubled.mean().item()
    return lambda: mean


def main():
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    probe = make_batch(0, 256)
    losses, callbacks = [], []
    for step in range(30):
        x = make_batch(step, 512)
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(model(probe).mean().item())
        cache[0] = x.repeat(8, 1)
        Meter().update(torch.cat([x, x, x]))
        callbacks.append(make_callback(x))
        handle = model.register_forward_hook(lambda *args, big=x.repeat(10, 1): big.dim() and None)
        handle.remove()
        try:
            check(step)
        except ValueError as error:
            failures.append(error.with_traceback(None))
    print("steps: 30")


if __name__ == "__main__":
    main()
