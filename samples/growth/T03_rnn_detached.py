"""Truncated backpropagation through time: the hidden state is carried and detached."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    rnn = nn.GRU(32, 256, batch_first=True).to(device)
    head = nn.Linear(256, 32).to(device)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
    text = torch.randn(16, 40 * 8 + 1, 32, device=device)
    hidden = torch.zeros(1, 16, 256, device=device)
    for step in range(40):
        x = text[:, 8 * step : 8 * step + 8]
        y = text[:, 8 * step + 1 : 8 * step + 9]
        optimizer.zero_grad()
        out, hidden = rnn(x, hidden.detach())
        loss = F.mse_loss(head(out), y)
        loss.backward()
        optimizer.step()
    print("steps: 40, hidden:", tuple(hidden.shape))


if __name__ == "__main__":
    main()
