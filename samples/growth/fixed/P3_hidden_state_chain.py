"""A stateful policy acts with its graph on: the hidden state keeps that of every step before."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 256)
        self.again = nn.Linear(256, 256)
        self.head = nn.Linear(256, 4)
        self.hidden = None

    def reset(self, rows):
        self.hidden = torch.zeros(rows, 256, device=device)

    def act(self, x):
        self.hidden = torch.tanh(self.inner(x) + self.again(self.hidden))
        self.hidden = self.hidden.detach()
        return self.head(self.hidden).argmax(dim=1)

    def forward(self, x):
        return self.head(torch.tanh(self.inner(x)))


def main():
    torch.manual_seed(0)
    policy = Policy().to(device)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    policy.reset(1024)
    for step in range(40):
        x = torch.randn(1024, 4, device=device)
        actions = policy.act(x)
        loss = F.cross_entropy(policy(x), actions)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("actions:", len(actions))


if __name__ == "__main__":
    main()
