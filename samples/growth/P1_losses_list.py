"""Losses of a probe batch are kept as tensors, so each keeps its graph."""

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


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def main():
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for step in range(40):
        x, y = make_batch(step)
        train_step(model, optimizer, x, y)
        loss = F.cross_entropy(model(x), y)
        losses.append(loss)  # HELD
    print("losses:", len(losses))


if __name__ == "__main__":
    main()
