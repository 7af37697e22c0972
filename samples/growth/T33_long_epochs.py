"""Outputs are gathered within epochs of thirty steps: the list is made anew for each."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Linear(64, 1024, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(4):
        outputs = []
        for _ in range(30):
            optimizer.zero_grad()
            out = model(torch.randn(256, 64, device=device))
            out.square().mean().backward()
            optimizer.step()
            outputs.append(out.detach())
        mean = torch.cat(outputs).mean().item()
    print("epochs: 4, finite:", mean == mean)


if __name__ == "__main__":
    main()
