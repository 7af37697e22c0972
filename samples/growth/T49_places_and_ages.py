"""Replays in places that are taken again, and states that go when they are so many steps old."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
RING = [None] * 25


def state():
    return torch.randn(256, 512, device=device)


class SumTree:
    def __init__(self, capacity):
        self.data, self.write, self.capacity = [None] * capacity, 0, capacity

    def add(self, x):
        self.data[self.write] = x
        self.write = (self.write + 1) % self.capacity


class Replay:
    def __init__(self, capacity):
        self.slots, self.position, self.capacity = {}, 0, capacity

    def push(self, x):
        self.slots[self.position % self.capacity] = x
        self.position += 1


class Delayed:
    def __init__(self, delay):
        self.grads, self.delay = {}, delay

    def exchange(self, step, grads):
        self.grads[step] = grads
        return self.grads.pop(step - self.delay, None)


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = [None] * 30

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        if self.rows[number] is None:
            self.rows[number] = torch.randn(256, 512)
        return self.rows[number]


def main():
    model, tree, replay, delayed, rows = nn.Linear(512, 512, device=device), SumTree(25), Replay(25), Delayed(20), Rows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    states, step = {}, 0
    for _ in range(2):
        for x in torch.utils.data.DataLoader(rows, batch_size=None):
            optimizer.zero_grad()
            model(x.to(device)).square().mean().backward()
            delayed.exchange(step, model.weight.grad.clone())
            optimizer.step()
            tree.add(state())
            replay.push(state())
            RING[step % 25] = state()
            states[step] = state()
            if step >= 20:
                del states[step - 20]
            step += 1
    print("kept:", len(replay.slots), len(delayed.grads), len(states))


if __name__ == "__main__":
    main()
