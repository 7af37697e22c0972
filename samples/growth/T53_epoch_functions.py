"""A function runs an epoch: its list, the meter that it makes, and a store that is made anew at the end, go with it."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Meter:
    def __init__(self):
        self.outputs = []

    def update(self, output):
        self.outputs.append(output)

    def result(self):
        return torch.cat(self.outputs).mean().item()


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.store = Meter()

    def step(self):
        output = self.model(torch.randn(256, 512, device=device))
        output.square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.store.update(output.detach())
        return output.detach()

    def end_epoch(self):
        result = self.store.result()
        self.store = Meter()
        return result


def train_one_epoch(trainer, meter):
    outputs = []
    for _ in range(30):
        output = trainer.step()
        outputs.append(output.clone())
        meter.update(output.clone())
    return torch.cat(outputs).mean().item()


def evaluate(model):
    outputs = []
    with torch.no_grad():
        for _ in range(30):
            outputs.append(model(torch.randn(256, 512, device=device)))
    return torch.cat(outputs).mean().item()


def main():
    model = nn.Linear(512, 512).to(device)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.01))
    for epoch in range(4):
        meter = Meter()
        train_one_epoch(trainer, meter)
        meter.result(), trainer.end_epoch()
        evaluate(model)
    print("epochs: 4")


if __name__ == "__main__":
    main()
