"""Sequences that get longer from epoch to epoch; the state is detached between the pieces."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    net, out = nn.LSTM(256, 256, 2, batch_first=True).to(device), nn.Linear(256, 256).to(device)
    optimizer = torch.optim.Adam([*net.parameters(), *out.parameters()])
    for epoch in range(8):
        state = None
        for _ in range(8):
            optimizer.zero_grad()
            x = torch.randn(16, 4 + 4 * epoch, 256, device=device)
            y, state = net(x, state)
            state = tuple(part.detach() for part in state)
            F.mse_loss(out(y), x).backward()
            optimizer.step()
    print("epochs: 8")


if __name__ == "__main__":
    main()
