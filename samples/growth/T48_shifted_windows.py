"""Windows that a new part takes the place of: keys and values, rows of a bank, lists, and what an epoch swaps out."""

from collections import defaultdict

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Attention(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window, self.keys, self.bank = window, None, torch.empty(0, 512, device=device)
        self.layer = nn.Linear(512, 512)

    def forward(self, x):
        keys = self.layer(x)
        self.keys = keys.detach() if self.keys is None else torch.cat([self.keys, keys.detach()], 1)
        if self.keys.size(1) > self.window:
            self.keys = self.keys[:, -self.window:]
        self.bank = torch.cat([self.bank, x.flatten(0, 1)])
        if len(self.bank) > 4 * self.window:
            self.bank = self.bank[-4 * self.window:].clone()
        return keys


class Outputs:
    def __init__(self):
        self.outputs, self.parts = [], defaultdict(list)

    def end_epoch(self):
        outputs, self.outputs = self.outputs, []
        return torch.stack(outputs).mean().item()


def main():
    model, outputs, recent = Attention(640).to(device), Outputs(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(120):
        optimizer.zero_grad()
        out = model(torch.randn(16, 32, 512, device=device))
        out.square().mean().backward()
        optimizer.step()
        outputs.outputs.append(out.detach())
        recent = recent[-19:] + [torch.randn(256, 512, device=device)]
        if step % 30 == 29:
            outputs.end_epoch()
    print("kept:", model.keys.size(1), len(model.bank), len(recent))


if __name__ == "__main__":
    main()
