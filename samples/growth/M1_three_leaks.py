"""Three leaks at once: losses with graphs, batches in a cache, a copy of the weights a step."""

import copy

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
cache = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(256, 1024)
        self.layer2 = nn.Linear(1024, 10)

    def forward(self, x):
        return self.layer2(torch.tanh(self.layer1(x)))  # LEAK loss


def make_batch(step):
    torch.manual_seed(step)
    return torch.randn(1024, 256, device=device)  # LEAK batch


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
        cache[step] = make_batch(step)  # HELD batch
        train_step(model, optimizer, cache[step])
        losses.append(model(probe).mean())  # HELD loss
        snapshots.append(copy.deepcopy(model.state_dict()))  # LEAK weights
    print("steps: 40")


if __name__ == "__main__":
    main()
