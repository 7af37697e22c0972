"""The outputs pile up in a list of the trainer, which has a cached method too: one mask."""

import functools

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self):
        self.model = nn.Linear(256, 256).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.outputs = []

    @functools.lru_cache(maxsize=None)
    def mask(self, size):
        return torch.triu(torch.ones(size, size, device=device))

    def step(self):
        x = torch.randn(256, 256, device=device)
        y = self.model(x * self.mask(256))  # LEAK
        y.square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.outputs.append(y.detach())  # HELD


def main():
    torch.manual_seed(0)
    trainer = Trainer()
    for _ in range(40):
        trainer.step()


if __name__ == "__main__":
    main()
