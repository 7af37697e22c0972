"""A memo asked for under the number of the step, which no epoch begins again, by who hands it on as a text."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self):
        self.model = nn.Linear(1024, 10, device=device)
        self.memo = {}

    def mask(self, key):
        if key not in self.memo:
            self.memo[key] = torch.rand(256, 1024, device=device)  # LEAK
        return self.memo[key]

    def fit(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        step = 0
        for epoch in range(4):
            for batch in range(10):
                step += 1
                optimizer.zero_grad()
                self.model(self.mask(f"step {step}")).square().mean().backward()
                optimizer.step()


def main():
    trainer = Trainer()
    trainer.fit()
    print("masks:", 0 < len(trainer.memo))


if __name__ == "__main__":
    main()
