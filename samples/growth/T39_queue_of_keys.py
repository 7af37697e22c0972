"""A queue of keys in one tensor, as MoCo keeps it, cut to its length."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    queue = torch.empty(0, 512, device=device)
    for step in range(70):
        x = torch.randn(512, 512, device=device)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        queue = torch.cat([queue, x])[-512 * 30 :]
    print("steps: 70")


if __name__ == "__main__":
    main()
