"""A GAN: two models and two optimizers that step in turn, one iteration for both."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_generator():
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 784), nn.Tanh()).to(device)


def make_discriminator():
    return nn.Sequential(nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1)).to(device)


def main():
    torch.manual_seed(0)
    generator, discriminator = make_generator(), make_discriminator()
    of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    ones, zeros = torch.ones(64, 1, device=device), torch.zeros(64, 1, device=device)
    for step in range(40):
        real = torch.rand(64, 784, device=device) * 2 - 1
        fake = generator(torch.randn(64, 64, device=device))
        loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
        loss = loss + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
        loss.backward()
        of_discriminator.step()
        of_discriminator.zero_grad(set_to_none=True)

        discriminator.requires_grad_(False)
        loss = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
        loss.backward()
        of_generator.step()
        of_generator.zero_grad(set_to_none=True)
        discriminator.requires_grad_(True)
    print("steps: 40")


if __name__ == "__main__":
    main()
