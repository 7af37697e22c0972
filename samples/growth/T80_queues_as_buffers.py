"""Queues of features that are buffers of a module: each keeps its newest rows, and is full sooner or later."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class CrossBatchMemory(nn.Module):
    def __init__(self, rows, size):
        super().__init__()
        self.rows = rows
        self.register_buffer("queue", torch.zeros(0, size))

    @torch.no_grad()
    def put(self, x):
        self.queue = torch.cat([self.queue, x])[-self.rows:]


class NewestFirst(nn.Module):
    def __init__(self, rows, size):
        super().__init__()
        self.rows = rows
        self.register_buffer("features", torch.zeros(0, size))

    @torch.no_grad()
    def put(self, x):
        keep = self.rows - x.shape[0]
        self.features = torch.cat([x, self.features[:keep]])


class TrimmedWhereFull(nn.Module):
    def __init__(self, rows, size):
        super().__init__()
        self.rows = rows
        self.register_buffer("keys", torch.zeros(0, size))

    @torch.no_grad()
    def put(self, x):
        self.keys = torch.cat([self.keys, x])
        if self.keys.size(0) > self.rows:
            self.keys = self.keys[-self.rows:]


def main():
    torch.manual_seed(0)
    model = nn.Linear(128, 512, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    queues = [kind(rows, 512).to(device) for kind in (CrossBatchMemory, NewestFirst, TrimmedWhereFull)
              for rows in (2_000, 8_000)]
    for step in range(100):
        optimizer.zero_grad(set_to_none=True)
        output = model(torch.randn(256, 128, device=device))
        output.pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        for queue in queues:
            queue.put(output.detach())
    print("steps: 100")


if __name__ == "__main__":
    main()
