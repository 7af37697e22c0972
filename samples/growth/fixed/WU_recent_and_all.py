"""The last outputs are in a deque with a bound; a table beside it keeps their means."""

from collections import deque

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Tracker:
    def __init__(self):
        self.recent = deque(maxlen=20)
        self.by_step = {}

    def add(self, step, output):
        row = {"step": step, "output": output}
        self.recent.append(row)
        self.by_step[step] = output.mean().item()

    def mean(self):
        return sum(row["output"].mean().item() for row in self.recent) / len(self.recent)


def main():
    torch.manual_seed(0)
    model = nn.Linear(128, 256, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    tracker = Tracker()
    for step in range(100):
        optimizer.zero_grad(set_to_none=True)
        output = model(torch.randn(256, 128, device=device))
        output.pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        tracker.add(step, output.detach())
        tracker.mean()
    print("steps:", len(tracker.by_step))


if __name__ == "__main__":
    main()
