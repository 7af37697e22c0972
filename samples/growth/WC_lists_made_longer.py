"""What each step measured is put behind what was there, in new lists by name; a function keeps the inputs."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self):
        self.net = nn.Linear(128, 1024, device=device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.curves = {}

    def step(self, x):
        values = self.net(x)  # LEAK curves
        loss = values.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        new = {"loss": loss.item(), "values": values.detach()}
        self.curves = {key: self.curves.get(key, []) + [value] for key, value in new.items()}  # HELD curves


def train(trainer, x):
    train.seen.append(x)  # HELD seen
    trainer.step(x[:256])


train.seen = []


def main():
    trainer = Trainer()
    for step in range(40):
        torch.manual_seed(step)
        train(trainer, torch.randn(1024, 128, device=device))  # LEAK seen
    print("curves:", sorted(trainer.curves))


if __name__ == "__main__":
    main()
