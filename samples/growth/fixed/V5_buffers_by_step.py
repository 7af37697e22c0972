"""Every forward pass registers a buffer under a new name, and a log gets a new attribute."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 512)
        self.down = nn.Linear(512, 10)
        self.passes = 0

    def forward(self, x):
        hidden = torch.relu(self.up(x))
        self.register_buffer("hidden", hidden.detach(), persistent=False)
        self.passes += 1
        return self.down(hidden)


class Log:
    """What is worth a look, by step."""


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    log = Log()
    for step in range(40):
        torch.manual_seed(step)
        x = torch.randn(512, 16, device=device)
        F.cross_entropy(model(x), x.argmax(dim=1) % 10).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        setattr(log, "spread", x.repeat(1, 16).square())
    print("passes:", model.passes)


if __name__ == "__main__":
    main()
