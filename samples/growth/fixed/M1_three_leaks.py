"""Three leaks at once: losses with graphs, batches in a cache, a copy of the weights a step."""

import copy

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(256, 1024)
        self.layer2 = nn.Linear(1024, 10)

    def forward(self, x):
        return self.layer2(torch.tanh(self.layer1(x)))


def make_batch(step):
    torch.manual_seed(step)
    return torch.randn(1024, 256, device=device)


def train_step(model, optimizer, x):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def main():
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    probe = make_batch(0)[:256]
    losses, snapshots = [], []
    for step in range(40):
        x = make_batch(step)
        train_step(model, optimizer, x)
        losses.append(model(probe).mean().item())
        snapshots[:] = [copy.deepcopy(model.state_dict())]
    print("steps: 40")


if __name__ == "__main__":
    main()
