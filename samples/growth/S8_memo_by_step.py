"""A memo that asks whether it knows the step already, which never comes again."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self):
        self.model = nn.Linear(1024, 10, device=device)
        self.memo = {}

    def mask(self, key):
        found = self.memo.get(key)
        if found is None:
            found = torch.rand(256, 1024, device=device)  # LEAK
            self.memo[key] = found  # HELD
        return found

    def fit(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        for step in range(40):
            optimizer.zero_grad()
            self.model(self.mask(f"step {step}")).square().mean().backward()
            optimizer.step()


def main():
    trainer = Trainer()
    trainer.fit()
    print("masks:", len(trainer.memo))


if __name__ == "__main__":
    main()
