"""A network is given a layer every ten steps until it has eight; its optimizer has state for each."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def layer():
    return nn.Linear(512, 512, device=device)


def main():
    layers = nn.ModuleList([layer()])
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    for step in range(150):
        if step % 10 == 9 and len(layers) < 8:
            layers.append(layer())
            optimizer.add_param_group({"params": layers[-1].parameters()})
        x = torch.randn(128, 512, device=device)
        optimizer.zero_grad()
        for each in layers:
            x = each(x).relu()
        x.mean().backward()
        optimizer.step()
    print("layers:", len(layers))


if __name__ == "__main__":
    main()
