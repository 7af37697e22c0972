"""Queues of features that a helper of the program keeps short, and that are items of a dict or a list."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
ROWS = 8_000


def keep_last(rows, count):
    return rows[-count:]


def trimmed(rows, count):
    if rows.size(0) > count:
        rows = rows[-count:]
    return rows.clone()


class ByHelper:
    def __init__(self, size):
        self.bank = torch.zeros(0, size, device=device)
        self.keys = torch.zeros(0, size, device=device)
        self.seen = torch.zeros(0, size, device=device)

    def put(self, x):
        self.bank = keep_last(torch.cat([self.bank, x]), ROWS)
        merged = torch.cat([x, self.keys])
        self.keys = trimmed(merged, ROWS)
        self.seen = self.newest(torch.cat([self.seen, x]))

    def newest(self, rows):
        return rows[-ROWS:]


class ByClass:
    def __init__(self, size):
        self.queues = {label: torch.zeros(0, size, device=device) for label in range(2)}
        self.recent = [torch.zeros(0, size, device=device) for _ in range(2)]

    def put(self, x, label):
        self.queues[label] = torch.cat([self.queues[label], x])[-ROWS:].clone()
        self.recent[label] = keep_last(torch.cat((self.recent[label], x)), ROWS)


def main():
    torch.manual_seed(0)
    model = nn.Linear(128, 512, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    memories = ByHelper(512), ByClass(512)
    for step in range(100):
        optimizer.zero_grad(set_to_none=True)
        output = model(torch.randn(256, 128, device=device))
        output.pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        memories[0].put(output.detach())
        memories[1].put(output.detach(), step % 2)
    print("steps: 100")


if __name__ == "__main__":
    main()
