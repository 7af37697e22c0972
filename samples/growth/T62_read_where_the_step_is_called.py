"""Sequences get longer with each step, up to a limit: what the step's methods set anew is read by each other, and
by the loop that has called the step, also behind it."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.batch = self.output = self.loss = None

    def prepare(self, number):
        self.batch = torch.randn(256 * min(number, 25), 256, device=device)

    def step(self, number):
        self.prepare(number)
        self.optimizer.zero_grad()
        self.loss = F.mse_loss(self.model(self.batch), self.batch)
        self.loss.backward()
        self.optimizer.step()
        self.output = self.batch * 2


def main():
    torch.manual_seed(0)
    trainer = Trainer(nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256)).to(device))
    for number in range(1, 61):
        trainer.step(number)
        if number % 20 == 0:
            print("rows:", len(trainer.batch), float(trainer.output.mean()) < 1)
    print("rows:", len(trainer.output), len(trainer.batch))


if __name__ == "__main__":
    main()
