"""Each event puts two new ones on the heap; next() takes one, and passes over those that were cancelled."""

import heapq
import itertools

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Scheduler:
    def __init__(self):
        self.heap = []
        self.numbers = itertools.count()

    def add(self, when, action):
        heapq.heappush(self.heap, (when, next(self.numbers), action))  # HELD

    def next(self):
        while self.heap:
            when, _, action = heapq.heappop(self.heap)
            if not getattr(action, "cancelled", False):
                return when, action


scheduler = Scheduler()


def make_update(model, optimizer, seed):
    torch.manual_seed(seed)
    x = torch.randn(256, 1024, device=device)  # LEAK

    def update(now):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        for delay in (1, 2):
            scheduler.add(now + delay, make_update(model, optimizer, now + delay))

    return update


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler.add(0, make_update(model, optimizer, 0))
    for _ in range(40):
        now, update = scheduler.next()
        update(now)
    print("steps: 40")


if __name__ == "__main__":
    main()
