"""An ordinary training loop.  It holds more memory from epoch to epoch."""

import torch
from torch import nn
from torch.nn import functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(256, 1024)
        self.head = nn.Linear(1024, 10)

    def encode(self, x):
        return torch.relu(self.proj(x))

    def forward(self, hidden):
        return self.head(hidden)


class Trainer:
    """One epoch of training; keeps activations for its statistics."""

    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer
        self.acts = []
        self.cb = lambda hidden: self.store(hidden)

    def store(self, hidden):
        self.acts.append(hidden.detach())

    def step(self, x, y):
        hidden = self.net.encode(x)
        self.cb(hidden)
        loss = F.cross_entropy(self.net(hidden), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def mean_activation(self):
        return sum(act.mean().item() for act in self.acts) / len(self.acts)


def main():
    torch.manual_seed(0)
    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(8):
        trainer = Trainer(net, optimizer)
        for _ in range(4):
            x = torch.randn(1024, 256, device=device)
            y = x[:, :10].argmax(dim=1)
            loss = trainer.step(x, y)
        mean = trainer.mean_activation()
        print(f"epoch {epoch}: loss {loss:.3f}, mean activation {mean:.3f}")


if __name__ == "__main__":
    main()
