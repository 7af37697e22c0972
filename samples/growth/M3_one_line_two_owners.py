"""One line allocates for three owners; one of them is bounded."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)  # LEAK


class Store:
    def __init__(self):
        self.items = {}


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first, store, window = [], Store(), []
    for step in range(40):
        x = features(step)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 4 == 0:
            window[:] = [x]
        elif step % 4 == 1:
            store.items[step] = x  # HELD store
        else:
            first.append(x)  # HELD first
    print("steps: 40")


if __name__ == "__main__":
    main()
