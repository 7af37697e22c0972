"""A decorator that tries again keeps what every try raised, with the traceback, for a summary at the end."""

import functools
import sys

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
failures = []


def retry(times):
    def wrap(function):
        @functools.wraps(function)
        def again(*args):
            for number in range(times):
                try:
                    return function(*args)
                except RuntimeError:
                    failures.append((number, sys.exc_info()))  # HELD

        return again

    return wrap


class Trainer:
    def __init__(self):
        self.net = nn.Linear(256, 256, device=device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.calls = 0

    @retry(3)
    def forward(self, x):
        hidden = self.net(x)  # ALSO
        self.calls += 1
        if self.calls % 2:
            raise RuntimeError("out of luck")
        return hidden

    def step(self):
        x = torch.randn(512, 256, device=device)  # LEAK
        self.optimizer.zero_grad()
        self.forward(x).square().mean().backward()
        self.optimizer.step()


def main():
    trainer = Trainer()
    for step in range(40):
        torch.manual_seed(step)
        trainer.step()
    print("failures:", len(failures))


if __name__ == "__main__":
    main()
