"""A window of forty outputs, each with a graph of its own: it grows until it is full."""

from collections import deque

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(64, 256), nn.Tanh()).to(device)
    head = nn.Linear(256, 64).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    window = deque(maxlen=40)
    for step in range(150):
        x = torch.randn(256, 64, device=device)
        features = body(x)
        window.append(features.square().mean())
        if step % 10 == 9:
            print("scale:", bool(torch.stack(list(window)[-10:]).mean() > 0))
        loss = (head(features.detach()) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
