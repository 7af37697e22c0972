"""A cache that is an object which is called: its first epoch fills it."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Features:
    def __init__(self, scale):
        self.scale = scale
        self.store = {}

    @torch.no_grad()
    def __call__(self, key, x):
        if key not in self.store:
            self.store[key] = (x * self.scale).cos()
        return self.store[key]


def main():
    torch.manual_seed(0)
    model = nn.Linear(64, 8).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = [torch.randn(4096, 64, device=device) for _ in range(16)]
    features = Features(2.0)
    for epoch in range(5):
        for key, x in enumerate(data):
            model(features(key, x)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    print("epochs:", epoch + 1)


if __name__ == "__main__":
    main()
