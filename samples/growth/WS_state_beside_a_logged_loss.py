"""A state stays in its module with the graph; last outputs and loss, which are logged, are set anew each step."""

from collections import deque

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.recent = deque(maxlen=4)
        self.cell = nn.GRUCell(64, 256)
        self.out = nn.Linear(256, 64)
        self.state = None

    def forward(self, x):
        self.state = self.cell(x, self.state)  # LEAK
        self.last = self.out(self.state)
        self.recent.append(self.last)
        return self.last


class Trainer:
    def __init__(self):
        self.loss = None
        self.model = Stateful().to(device)
        self.optimizer = torch.optim.SGD([self.model.out.bias], lr=0.01)

    def begin_epoch(self):
        self.loss = None

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.model(x).square().mean()
        self.loss = loss
        loss.backward(retain_graph=True)
        self.optimizer.step()
        return loss


def main():
    torch.manual_seed(0)
    trainer = Trainer()
    for epoch in range(3):
        trainer.begin_epoch()
        for _ in range(20):
            trainer.step(torch.randn(256, 64, device=device))  # ALSO batch
        print("epoch:", epoch, "finite:", bool(trainer.loss.isfinite()))


if __name__ == "__main__":
    main()
