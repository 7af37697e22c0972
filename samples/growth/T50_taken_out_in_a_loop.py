"""Caches that a loop makes small enough, and buffers that are used at once when they are full."""

from collections import OrderedDict, defaultdict

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def state():
    return torch.randn(256, 512, device=device)


class ByteCache:
    def __init__(self, budget):
        self.items, self.budget, self.used = OrderedDict(), budget, 0

    def put(self, key, x):
        self.items[key] = x
        self.used += x.nbytes
        while self.used > self.budget:
            self.used -= self.items.popitem(last=False)[1].nbytes


class Recent:
    def __init__(self, age):
        self.steps, self.age = {}, age

    def put(self, step, x):
        self.steps[step] = x
        self.expire(step)

    def expire(self, now):
        for old in [step for step in self.steps if step <= now - self.age]:
            del self.steps[old]


class NoiseScale:
    def __init__(self, every):
        self.every, self.grads, self.rounds, self.noise = every, [], 0, 0.0

    def record(self, grad):
        self.grads.append(grad)
        if len(self.grads) < self.every:
            return
        self.noise = torch.stack(self.grads).var(0).sum().item()
        self.grads = []


class Episode:
    def __init__(self):
        self.values = defaultdict(list)

    def add(self, **values):
        for name, value in values.items():
            self.values[name].append(value)

    def end(self):
        whole = {name: torch.stack(values) for name, values in self.values.items()}
        self.values = defaultdict(list)
        return whole


def main():
    model = nn.Linear(512, 512, device=device)
    cache, recent, noise, episode = ByteCache(25 * 512 * 1024), Recent(25), NoiseScale(25), Episode()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(120):
        optimizer.zero_grad()
        model(state()).square().mean().backward()
        noise.record(model.weight.grad.clone())
        optimizer.step()
        cache.put(step, state())
        recent.put(step, state())
        episode.add(states=state(), rewards=torch.randn(256, device=device))
        if step % 30 == 29:
            episode.end()
    print("kept:", len(cache.items), len(recent.steps), len(noise.grads))


if __name__ == "__main__":
    main()
