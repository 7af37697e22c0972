"""A cycle that holds only the loss: the activations behind it die late."""

import gc

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 1024)
        self.down = nn.Linear(1024, 10)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))  # LEAK


def make_batch(step):
    torch.manual_seed(step)
    x = torch.randn(256, 16, device=device)
    return x, x.argmax(dim=1) % 10


class Result:
    def __init__(self, loss):
        self.loss = loss
        self.best = self  # HELD


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gc.collect()
    for step in range(40):
        x, y = make_batch(step)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        Result(F.cross_entropy(model(x), y))
        if step % 8 == 7:
            gc.collect()
    print("steps: 40")


if __name__ == "__main__":
    main()
