"""Each layer puts its keys behind those of all steps: an attribute of modules, and one of plain objects."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(256, 256), nn.Linear(256, 256)
        self.past = None

    def forward(self, x):
        key = self.key(x).detach()
        self.past = key if self.past is None else torch.cat([self.past, key])  # LEAK past
        return torch.softmax(self.query(x) @ key.T, dim=1) @ x


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


class Statistics:
    def __init__(self):
        self.rows = torch.empty(0, 256, device=device)

    def add(self, x):
        self.rows = torch.cat([self.rows, x])  # LEAK rows


class Trainer:
    def __init__(self):
        self.model = Transformer().to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.statistics = {name: Statistics() for name in ("input", "output")}

    def step(self, x):
        self.optimizer.zero_grad()
        output = self.model(x)
        output.square().mean().backward()
        self.optimizer.step()
        self.statistics["input"].add(x)
        self.statistics["output"].add(output.detach())


def main():
    trainer = Trainer()
    for _ in range(40):
        trainer.step(torch.randn(1024, 256, device=device))
    print("layers:", len(trainer.model.layers))


if __name__ == "__main__":
    main()
