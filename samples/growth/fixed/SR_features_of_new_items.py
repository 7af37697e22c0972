"""A list gets one sample more in each step, and is cleared when that has been used."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Image:
    def __init__(self, seed):
        self.seed = seed

    @functools.cached_property
    def features(self):
        return torch.randn(256, 1024, device=device).tanh()


def train(model, optimizer, image):
    loss = F.mse_loss(model(image.features), image.features)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def main():
    torch.manual_seed(0)
    images = [Image(seed) for seed in range(100)]
    model = nn.Linear(1024, 1024, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(60):
        images.append(Image(step))
        train(model, optimizer, images[-1])
        images.clear()
    print("images:", step + 1)


if __name__ == "__main__":
    main()
