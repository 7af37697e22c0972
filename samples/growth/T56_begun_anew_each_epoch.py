"""Rows that torch.cat() makes longer from None on, an object that runs an epoch, and a context that takes back what was added."""

import contextlib

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 30


class Loop:
    def __init__(self):
        self.model = nn.Linear(512, 512).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self):
        self.optimizer.zero_grad()
        output = self.model(torch.randn(256, 512, device=device))
        output.square().mean().backward()
        self.optimizer.step()
        return output.detach()


class Epoch:
    def __init__(self, loop):
        self.loop, self.outputs = loop, []

    def run(self):
        for _ in range(STEPS):
            self.outputs.append(self.loop.step())
        return torch.cat(self.outputs).mean().item()


def gather(loop):
    rows = None
    for _ in range(STEPS):
        output = loop.step()
        rows = output if rows is None else torch.cat((rows, output))
    return rows.mean().item()


@contextlib.contextmanager
def recording(rows):
    start = len(rows)
    yield rows
    del rows[start:]


def main():
    loop, rows = Loop(), []
    for _ in range(4):
        gather(loop)
        epoch = Epoch(loop)
        epoch.run()
        with recording(rows):
            for _ in range(STEPS):
                rows.append(loop.step())
    print("rows:", len(rows), "of the last epoch:", len(epoch.outputs))


if __name__ == "__main__":
    main()
