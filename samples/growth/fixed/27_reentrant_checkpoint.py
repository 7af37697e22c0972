"""Errors raised inside a checkpointed forward are kept: their frames hold its activations."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

device = "cuda" if torch.cuda.is_available() else "cpu"
failures = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 1024)
        self.down = nn.Linear(1024, 10)

    def block(self, x):
        hidden = torch.tanh(self.up(x))
        out = self.down(hidden)
        if not out.isfinite().all():
            raise FloatingPointError("the output is not finite")
        return out

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=True)


def make_batch(step):
    torch.manual_seed(step)
    x = torch.randn(256, 16, device=device, requires_grad=True)
    return x, x.detach().argmax(dim=1) % 10


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        x, y = make_batch(step)
        train_step(model, optimizer, x, y)
        try:
            train_step(model, optimizer, x / 0, y)
        except FloatingPointError as error:
            failures.append(error.with_traceback(None))
    print("bad batches:", len(failures))


if __name__ == "__main__":
    main()
