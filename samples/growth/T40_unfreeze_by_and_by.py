"""One more layer is trained every other step, from the last to the first: each gets a gradient
and its state of the optimizer once."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
LAYERS = 14


def main():
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(LAYERS)).to(device)
    layers.requires_grad_(False)
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-4)
    for step in range(50):
        if step % 2 == 0 and step // 2 < LAYERS:
            layers[-1 - step // 2].requires_grad_(True)
        x = torch.randn(16, 512, device=device)
        optimizer.zero_grad()
        for layer in layers:
            x = torch.tanh(layer(x))
        x.square().mean().backward()
        optimizer.step()
    print("trained:", sum(layer.weight.requires_grad for layer in layers))


if __name__ == "__main__":
    main()
