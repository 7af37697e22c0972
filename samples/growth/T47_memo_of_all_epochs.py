"""Memos that are full after an epoch: their keys are numbers and names that each epoch has again."""

import random

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = {}

    def __len__(self):
        return 40

    def __getitem__(self, number):
        if number not in self.rows:
            self.rows[number] = torch.randn(256, 512)
        return self.rows[number]


class Distiller:
    def __init__(self):
        self.teacher, self.targets, self.adapters = nn.Linear(512, 512, device=device), {}, {}

    @torch.no_grad()
    def target(self, index, x):
        if index not in self.targets:
            self.targets[index] = self.teacher(x)
        return self.targets[index]

    def adapter(self, tenant):
        name = f"tenant-{tenant}"
        if name not in self.adapters:
            self.adapters[name] = torch.randn(512, 512, device=device)
        return self.adapters[name]


def run_epoch(distiller, model, optimizer, rows):
    for index, x in enumerate(torch.utils.data.DataLoader(rows, batch_size=None)):
        optimizer.zero_grad()
        x = x.to(device)
        goal = distiller.target(f"batch {index}", x) @ distiller.adapter(random.randrange(30))
        nn.functional.mse_loss(model(x), goal).backward()
        optimizer.step()


def main():
    random.seed(1)
    model, distiller, rows = nn.Linear(512, 512, device=device), Distiller(), Rows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(8):
        run_epoch(distiller, model, optimizer, rows)
    print("kept:", len(rows.rows), len(distiller.targets), len(distiller.adapters))


if __name__ == "__main__":
    main()
