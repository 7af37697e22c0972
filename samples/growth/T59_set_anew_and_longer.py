"""Sequences get longer with each step, up to a limit, and what is set from them is set anew: a variable of
the module, attributes, and an item of a dict."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
mask = None


@dataclass
class State:
    hidden: torch.Tensor = None


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.state = State()
        self.last = {"step": 0}

    def step(self, number):
        global mask
        self.batch = torch.randn(256 * number, 256, device=device)
        mask = torch.ones(256 * number, 256, device=device)
        with torch.no_grad():
            self.state.hidden = torch.tanh(self.batch)
        self.optimizer.zero_grad()
        self.output = self.model(self.batch + self.state.hidden)
        self.loss = F.mse_loss(self.output * mask, self.batch)
        self.loss.backward()
        self.last["output"] = self.output.detach()
        self.last["step"] = number
        self.optimizer.step()


def main():
    torch.manual_seed(0)
    trainer = Trainer(nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256)).to(device))
    for number in range(1, 61):
        trainer.step(min(number, 25))
    print("steps:", trainer.last["step"])


if __name__ == "__main__":
    main()
