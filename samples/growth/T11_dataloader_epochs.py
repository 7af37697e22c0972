"""Epochs over a data loader; the losses of an epoch are kept as tensors and let go at its end."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"


def train_epoch(model, optimizer, loader):
    losses = []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(2048, 1024), torch.randint(0, 10, (2048,)))
    loader = DataLoader(data, batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    means = [train_epoch(model, optimizer, loader) for _ in range(5)]
    print("epochs:", len(means))


if __name__ == "__main__":
    main()
