"""What an epoch gathers goes with a context manager's object, by a handler within a function, and in a method of that purpose."""

from collections import defaultdict
from functools import partial

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 30


class Engine:
    def __init__(self, process):
        self.process, self.handlers, self.output = process, defaultdict(list), None

    def on(self, event):
        def register(function):
            self.handlers[event].append(function)
            return function

        return register

    def fire(self, event):
        for function in self.handlers[event]:
            function(self)

    def run(self, epochs):
        for _ in range(epochs):
            self.fire("epoch started")
            for _ in range(STEPS):
                self.output = self.process()
                self.fire("iteration completed")
            self.fire("epoch completed")


class OutputStore:
    def __init__(self):
        self.data = None

    def reset(self):
        self.data = []

    def update(self, engine):
        self.data.append(engine.output)

    def attach(self, engine):
        engine.on("epoch started")(lambda engine: self.reset())
        engine.on("iteration completed")(self.update)


class Recorder:
    def __init__(self, model):
        self.model, self.handles, self.outputs = model, [], defaultdict(list)

    def __enter__(self):
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Linear):
                self.handles.append(module.register_forward_hook(partial(self.hook, name)))
        return self

    def hook(self, name, module, inputs, output):
        self.outputs[name].append(output.detach())

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


class Reservoir:
    def __init__(self, size):
        self.size, self.seen, self.rows = size, 0, []

    def add(self, row):
        self.seen += 1
        if self.seen <= self.size:
            self.rows.append(row)
        else:
            self.rows[self.seen * 7 % self.size] = row


def main():
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    store, reservoir, seen, spreads = OutputStore(), Reservoir(40), [], []

    def process():
        optimizer.zero_grad()
        output = model(torch.randn(256, 512, device=device))
        output.square().mean().backward()
        optimizer.step()
        reservoir.add(output.detach() * 3)
        return output.detach()

    engine = Engine(process)
    store.attach(engine)

    @engine.on("iteration completed")
    def remember(engine):
        seen.append(engine.output * 2)

    @engine.on("epoch completed")
    def log(engine):
        spreads.append(torch.cat(seen).std().item())
        seen.clear()

    engine.run(4)
    for _ in range(4):
        with Recorder(model) as recorder:
            for _ in range(STEPS):
                process()
    print("epochs:", len(spreads), "layers:", len(recorder.outputs), "rows:", len(reservoir.rows))


if __name__ == "__main__":
    main()
