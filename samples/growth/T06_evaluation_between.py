"""An evaluation every ten steps, whose outputs are gathered and then let go."""

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


@torch.no_grad()
def evaluate(model):
    model.eval()
    outputs = [model(make_batch(1000 + i)[0]).repeat(1, 20) for i in range(8)]
    model.train()
    return torch.cat(outputs).shape[0]


def main():
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    evaluated = 0
    for step in range(50):
        x, y = make_batch(step)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 9:
            evaluated += evaluate(model)
    print("steps: 50, evaluated:", evaluated)


if __name__ == "__main__":
    main()
