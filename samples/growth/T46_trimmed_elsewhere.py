"""Windows that a function, a method or a second name keeps short, in each way that one is written."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def trim(items, most):
    while len(items) > most:
        items.pop(0)


def cut(items):
    del items[:-25]


def keep_last(items, most=25):
    items[:] = items[-most:]


def drop(items):
    if len(items) > 25:
        items.clear()


def last(items, most):
    items = items[-most:]
    return items


class Windows:
    def __init__(self):
        self.states, self.losses, self.norms, self.masks, self.scores = [], [], [], [], []
        self.grads, self.inputs = [], []

    def shorten(self, items):
        trim(items, most=25)

    def recent(self, items):
        return items[-25:]

    def add(self):
        self.states.append(torch.randn(256, 512, device=device))
        trim(self.states, 25)
        self.losses.append(torch.randn(256, 512, device=device))
        cut(self.losses)
        self.norms.append(torch.randn(256, 512, device=device))
        keep_last(self.norms, most=25)
        self.masks.append(torch.randn(256, 512, device=device))
        drop(self.masks)
        self.scores.append(torch.randn(256, 512, device=device))
        self.shorten(self.scores)
        self.grads.append(torch.randn(256, 512, device=device))
        self.grads = last(self.grads, 25)
        self.inputs.append(torch.randn(256, 512, device=device))
        self.inputs = self.recent(self.inputs)


def main():
    model, windows = nn.Linear(1024, 10, device=device), Windows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, outputs = [], []
    for _ in range(120):
        optimizer.zero_grad()
        x = torch.randn(256, 1024, device=device)
        out = model(x)
        out.square().mean().backward()
        optimizer.step()
        windows.add()
        inputs.append(x)
        count = len(inputs)
        if count > 25:
            inputs.pop(0)
        kept = outputs
        kept.append(torch.randn(256, 512, device=device))
        while len(kept) > 25:
            kept.pop(0)
    print("kept:", len(inputs), len(outputs), len(windows.states), len(windows.scores))


if __name__ == "__main__":
    main()
