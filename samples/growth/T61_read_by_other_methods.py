"""Sequences get longer with each step, up to a limit: what one method sets from them is read by others, which it
calls then; a function of the module is handed the object, another one reads a variable."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
lengths = None


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.batch = self.target = self.output = self.norms = None

    def train(self, steps):
        for number in range(1, steps + 1):
            self.batch = torch.randn(256 * min(number, 25), 256, device=device)
            self.target = torch.tanh(self.batch)
            self.optimizer.zero_grad()
            loss = self.compute_loss()
            loss.backward()
            self.optimizer.step()
            note(self)

    def compute_loss(self):
        self.output = self.model(self.batch)
        return F.mse_loss(self.output, self.target) + self.penalty()

    def penalty(self):
        return 0.01 * sum(part.pow(2).mean() for part in self.output.chunk(2))


def note(trainer):
    global lengths
    lengths = trainer.batch.norm(dim=1).repeat(64)
    trainer.norms = lengths * 2
    tell(trainer)


def tell(trainer):
    return trainer.norms.max(), longest()


def longest():
    return lengths.max()


def main():
    torch.manual_seed(0)
    trainer = Trainer(nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256)).to(device))
    trainer.train(60)
    print("steps done")


if __name__ == "__main__":
    main()
