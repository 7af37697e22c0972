"""The trainer's history holds loss tensors whose backward was asked to retain its graph."""

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


class Trainer:
    def __init__(self):
        self.model = Net().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.history = {"loss": []}

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward(retain_graph=True)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.history["loss"].append(loss.item())


def main():
    trainer = Trainer()
    for step in range(40):
        trainer.step(*make_batch(step))
    print("steps:", len(trainer.history["loss"]))


if __name__ == "__main__":
    main()
