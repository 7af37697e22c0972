"""A new Adam every epoch; the old ones stay in a list, each with its state."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def train_epoch(model, optimizer):
    for _ in range(2):
        x = torch.randn(8, 512, device=device)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def main():
    model = nn.Linear(512, 512, device=device)
    history = []
    for _ in range(30):
        optimizer = torch.optim.Adam(model.parameters(), foreach=False)
        train_epoch(model, optimizer)
        history.append(optimizer.param_groups[0]["lr"])
    print("epochs:", len(history))


if __name__ == "__main__":
    main()
