"""Every session puts a method of its own on the program's bus, and takes none off."""

import weakref

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Bus:
    def __init__(self):
        self.handlers = {}

    def on(self, event, handler):
        self.handlers.setdefault(event, []).append(handler)

    def emit(self, event):
        methods = [reference() for reference in self.handlers.get(event, ())]
        for method in methods:
            if method is not None:
                method()


class Session:
    def __init__(self, bus, model, x):
        self.hidden = model(x).detach()
        self.valid = True
        bus.on("trained", weakref.WeakMethod(self.forget))

    def forget(self):
        self.valid = False

    def answer(self):
        return self.hidden.mean().item()


def main():
    bus = Bus()
    model = nn.Linear(64, 1024, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        torch.manual_seed(step)
        x = torch.randn(256, 64, device=device)
        Session(bus, model, x).answer()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        bus.emit("trained")
    print("events:", len(bus.handlers))


if __name__ == "__main__":
    main()
