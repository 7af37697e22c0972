"""Outputs of an evaluation without no_grad are kept in a list: so is all that made them."""

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


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


@torch.no_grad()
def evaluate(model, batches, outputs):
    model.eval()
    for x, _ in batches:
        outputs.append(model(x))
    model.train()


def main():
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    outputs = []
    for step in range(40):
        train_step(model, optimizer, *make_batch(step))
        evaluate(model, [make_batch(1000 + step)], outputs)
    print("outputs:", len(outputs), tuple(outputs[0].shape))


if __name__ == "__main__":
    main()
