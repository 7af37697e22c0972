"""A big tensor is freed half way: what the allocator keeps cached is no leak."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    big = torch.zeros(16, 1024, 1024, device=device)
    for step in range(40):
        if step == 20:
            big = None
        loss = model(torch.randn(256, 1024, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 40, freed:", big is None)


if __name__ == "__main__":
    main()
