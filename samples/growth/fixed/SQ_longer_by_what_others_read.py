"""What one method sets is the last rows, as another one has read what was there before."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.outputs = torch.empty(0, 512, device=device)

    def with_outputs(self, x):
        return torch.cat([self.outputs, x])[-2048:]

    def step(self):
        x = torch.randn(512, 512, device=device)
        self.optimizer.zero_grad(set_to_none=True)
        F.mse_loss(self.model(x), x).backward()
        self.optimizer.step()
        self.outputs = self.with_outputs(x)


def main():
    torch.manual_seed(0)
    trainer = Trainer(nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).to(device))
    for _ in range(40):
        trainer.step()
    print("rows:", len(trainer.outputs))


if __name__ == "__main__":
    main()
