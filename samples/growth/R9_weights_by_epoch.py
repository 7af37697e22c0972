"""The weights of every epoch stay in a dict beside the model."""

import copy

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def train_epoch(model, optimizer, epoch):
    for step in range(2):
        torch.manual_seed(2 * epoch + step)
        optimizer.zero_grad()
        model(torch.randn(32, 16, device=device)).square().mean().backward()
        optimizer.step()


def main():
    model = nn.Sequential(nn.Linear(16, 8192), nn.ReLU(), nn.Linear(8192, 8)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    checkpoints = {}
    for epoch in range(24):
        train_epoch(model, optimizer, epoch)
        checkpoints[f"epoch {epoch}"] = copy.deepcopy(model.state_dict())  # LEAK
    print("last:", sorted(checkpoints)[-1])


if __name__ == "__main__":
    main()
