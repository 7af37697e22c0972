"""A copy of the averaged weights is kept at every step."""

import copy

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    model = nn.Linear(512, 512, device=device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    snapshots = []
    for _ in range(40):
        loss = model(torch.ones(8, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.weight.lerp_(model.weight.detach(), 0.01)
        snapshots.append(copy.deepcopy(average))  # LEAK
    print("snapshots:", len(snapshots))


if __name__ == "__main__":
    main()
