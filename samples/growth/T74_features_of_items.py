"""Each sample of a data set computes its features when it is first asked, two ways, and keeps them."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Image:
    def __init__(self, seed):
        self.seed = seed
        self._edges = None

    def pixels(self):
        noise = torch.Generator().manual_seed(self.seed)
        return torch.randn(128, 1024, generator=noise).to(device)

    @functools.cached_property
    def features(self):
        return self.pixels().tanh()

    def edges(self):
        if self._edges is None:
            self._edges = self.pixels().diff(dim=1, append=torch.zeros(128, 1, device=device))
        return self._edges


def train(model, optimizer, image):
    prediction = model(image.features)
    loss = F.mse_loss(prediction, image.edges())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()


def main():
    torch.manual_seed(0)
    images = [Image(seed) for seed in range(20)]
    model = nn.Linear(1024, 1024, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(60):
        loss = train(model, optimizer, images[step * 7 % len(images)])
    print("loss:", loss > 0)


if __name__ == "__main__":
    main()
