"""One more layer is trained every other step; the gradients of the last one are kept."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
LAYERS = 20


def main():
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(LAYERS)).to(device)
    layers.requires_grad_(False)
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-4)
    seen = []
    for step in range(40):
        if step % 2 == 0:
            layers[-1 - step // 2].requires_grad_(True)
        x = torch.randn(16, 512, device=device)
        for layer in layers:
            x = torch.tanh(layer(x))  # ALSO
        x.square().mean().backward()  # LEAK
        seen.append(layers[-1].weight.grad)  # HELD
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("gradients:", len(seen))


if __name__ == "__main__":
    main()
