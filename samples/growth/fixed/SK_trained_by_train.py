"""Numbers are kept by a function train(), which runs once, whatever is called train() in its loop; and by a wrapped owner."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Log:
    def __init__(self):
        self.states = []

    def add(self, x):
        self.states.append(x.mean().item())


class Wrapped:
    def __init__(self, log):
        self.log = log


class Trainer:
    def __init__(self):
        self.log = Log()

    def prepare(self):
        self.log = Wrapped(self.log)


def train(model, trainer):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = []
    for _ in range(40):
        model.train()
        trainer.prepare() if isinstance(trainer.log, Log) else None
        x = torch.randn(256, 1024, device=device)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        batches.append(x.mean().item())
        trainer.log.log.add(x)
    return len(batches)


def main():
    print("batches:", train(nn.Linear(1024, 10, device=device), Trainer()))


if __name__ == "__main__":
    main()
