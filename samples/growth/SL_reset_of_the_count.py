"""Two metrics are reset after each epoch, but for what they keep: only their count is."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Metric:
    def __init__(self):
        self.parts, self.count = [], 0

    def reset(self):
        self.count = 0

    def update(self, output):
        self.parts.append(output.clone())  # LEAK
        self.count += 1


def main():
    model, metrics = nn.Linear(512, 512, device=device), {"mean": Metric(), "spread": Metric()}  # HELD metrics
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(4):
        for _ in range(12):
            optimizer.zero_grad()
            output = model(torch.randn(512, 512, device=device))
            output.square().mean().backward()
            optimizer.step()
            for metric in metrics.values():
                metric.update(output.detach())
        for metric in metrics.values():
            metric.reset()
    print("count:", metrics["mean"].count)


if __name__ == "__main__":
    main()
