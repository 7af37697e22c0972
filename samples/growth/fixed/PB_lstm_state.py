"""A head is trained on an LSTM that goes through one long sequence: its state is detached."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    lstm, head = nn.LSTM(128, 128).to(device), nn.Linear(128, 10, device=device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    state = None
    for step in range(30):
        x = torch.randn(32, 64, 128, device=device)
        out, state = lstm(x, state)
        optimizer.zero_grad()
        head(out.detach()).square().mean().backward()
        optimizer.step()
        state = tuple(x.detach() for x in state)
    print("parts of the state:", len(state))


if __name__ == "__main__":
    main()
