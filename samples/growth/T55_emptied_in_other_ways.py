"""Outputs of an epoch in a dict of lists, by epoch, in metrics, by a hook and a generator, and deleted in the loop."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 30


class Metric:
    def __init__(self):
        self.reset()

    def reset(self):
        self.parts, self.count = [], 0

    def update(self, output):
        self.parts.append(output.clone())
        self.count += 1


class Metrics:
    def __init__(self):
        self.metrics = {"mean": Metric(), "spread": Metric()}

    def update(self, output):
        for metric in self.metrics.values():
            metric.update(output)

    def reset(self):
        for metric in self.metrics.values():
            metric.reset()


class Rows:
    def __init__(self, most):
        self.most, self.rows = most, None

    def push(self, output):
        self.rows = output if self.rows is None else torch.cat((self.rows, output))
        excess = self.rows.shape[0] - self.most
        if excess > 0:
            self.rows = self.rows.narrow(0, excess, self.most).clone()


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


def run_epoch(loop, metrics, rows):
    logs = {"outputs": [], "squares": []}
    for _ in range(STEPS):
        output = loop.step()
        logs["outputs"].append(output)
        logs["squares"].append(output.square())
        metrics.update(output)
        rows.push(output)
    return {name: torch.cat(parts).mean().item() for name, parts in logs.items()}


def run_with_hook(loop):
    seen = []
    handle = loop.model.register_forward_hook(lambda module, inputs, output: seen.append(output.detach()))
    for _ in range(STEPS):
        loop.step()
    handle.remove()
    return torch.cat(seen).mean().item()


def groups(loop, count):
    group = []
    for _ in range(count):
        group.append(loop.step())
        if len(group) == STEPS:
            yield torch.cat(group)
            group = []


def main():
    loop, metrics, rows, by_epoch = Loop(), Metrics(), Rows(256 * STEPS), {}
    for epoch in range(4):
        first = []
        for _ in range(STEPS):
            first.append(loop.step())
        mean = torch.cat(first).mean().item()
        del first
        by_epoch.pop(epoch - 1, None)
        by_epoch[epoch] = []
        run_epoch(loop, metrics, rows)
        metrics.reset()
        run_with_hook(loop)
        for _ in range(STEPS):
            by_epoch[epoch].append(loop.step())
        sizes = [len(group) for group in groups(loop, 2 * STEPS)]
    print("rows:", len(rows.rows), "groups:", sizes, "finite:", mean == mean)


if __name__ == "__main__":
    main()
