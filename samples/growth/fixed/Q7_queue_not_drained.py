"""A queue is filled twice as fast as it is drained."""

import queue

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pending = queue.Queue()
    for step in range(40):
        x = features(step)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        pending.put(x)
        pending.get()
    print("steps: 40")


if __name__ == "__main__":
    main()
