"""A trainer per fold; its log function captures it."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self):
        self.model = nn.Linear(1024, 1024, device=device)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.batch = torch.ones(2048, 1024, device=device)
        self.losses = []
        self.log = lambda loss: self.losses.append(loss.item())

    def fit(self, steps):
        for _ in range(steps):
            loss = self.model(self.batch[:8]).square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.log(loss)
        return len(self.losses)


def main():
    for fold in range(2):
        print("fold", fold, "steps", Trainer().fit(3))
        gc.collect()


if __name__ == "__main__":
    main()
