"""The batches of a data loader are kept in a list."""

import torch
from torch import nn
from torch.utils.data import DataLoader

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    rows = [torch.randn(1024) for _ in range(256)]
    loader = DataLoader(rows * 40, batch_size=256)
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = []
    for x in loader:
        x = x.to(device)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        batches.append(len(x))
    print("batches:", len(batches))


if __name__ == "__main__":
    main()
