"""A pruner registers a hook on the weight of each layer in every step; each keeps a mask of its own."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Pruner:
    def __init__(self, model):
        self.model = model

    def mask_of(self, weight):
        return (weight.detach().abs() > 0.01).float()  # LEAK

    def apply(self):
        for layer in self.model:
            mask = self.mask_of(layer.weight)
            layer.weight.data.mul_(mask)
            layer.weight.register_hook(lambda grad, mask=mask: grad * mask)  # HELD


def main():
    model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(12)]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pruner = Pruner(model)
    for _ in range(40):
        loss = model(torch.randn(32, 128, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pruner.apply()
    print("layers:", len(model))


if __name__ == "__main__":
    main()
