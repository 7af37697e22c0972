"""Loss tensors are gathered for ten steps, logged as one number, and cleared."""

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
        return self.down(torch.tanh(self.up(x)))


def make_batch(step):
    torch.manual_seed(step)
    x = torch.randn(256, 16, device=device)
    return x, x.argmax(dim=1) % 10


def main():
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    recent, logged = [], []
    for step in range(50):
        x, y = make_batch(step)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        recent.append(loss)
        if len(recent) == 10:
            logged.append(torch.stack(recent).mean().item())
            recent.clear()
    print("logged:", len(logged))


if __name__ == "__main__":
    main()
