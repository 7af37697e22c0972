"""Windows that a condition makes: what is old is left out of the list that takes the place of the last one."""

from collections import deque

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def state():
    return torch.randn(256, 512, device=device)


class Event:
    def __init__(self, step):
        self.step, self.state = step, state()


class Windows:
    def __init__(self, age):
        self.age, self.events, self.by_step, self.kept = age, [], {}, []
        self.fresh, self.queue = [], deque()
        self.bank, self.ages = torch.empty(0, 512, device=device), torch.empty(0, device=device)

    def put(self, step):
        self.events.append(Event(step))
        self.events = [event for event in self.events if step - event.step < self.age]
        self.by_step[step] = state()
        self.by_step = {old: x for old, x in self.by_step.items() if old > step - self.age}
        self.queue.append(Event(step))
        self.queue = deque(event for event in self.queue if step - event.step < self.age)
        self.fresh.append(Event(step))
        self.fresh = list(filter(lambda event: step - event.step < self.age, self.fresh))

    def put_late(self, step):
        self.kept.append(Event(step))
        recent = []
        for event in self.kept:
            if step - event.step < self.age:
                recent.append(event)
        self.kept = recent

    def put_rows(self, step):
        self.bank = torch.cat([self.bank, state()])
        self.ages = torch.cat([self.ages, torch.full((256,), float(step), device=device)])
        keep = self.ages > step - self.age
        self.bank, self.ages = self.bank[keep], self.ages[keep]


def main():
    model, windows, recent = nn.Linear(512, 512, device=device), Windows(25), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(120):
        optimizer.zero_grad()
        model(state()).square().mean().backward()
        optimizer.step()
        windows.put(step)
        windows.put_late(step)
        windows.put_rows(step)
        recent.append(Event(step))
        recent = [event for event in recent if step - event.step < 25]
    print("kept:", len(windows.events), len(windows.queue), len(windows.kept), len(windows.bank), len(recent))


if __name__ == "__main__":
    main()
