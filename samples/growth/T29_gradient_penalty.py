"""A critic with a gradient penalty: gradients of gradients, two optimizers in turn."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_net(out):
    return nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, out)).to(device)


def penalty(critic, real, fake):
    share = torch.rand(64, 1, device=device)
    mixed = (share * real + (1 - share) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return ((gradient.norm(2, 1) - 1) ** 2).mean()


def main():
    torch.manual_seed(0)
    generator, critic = make_net(512), make_net(1)
    optimizers = [torch.optim.Adam(net.parameters(), lr=1e-4) for net in (generator, critic)]
    for _ in range(50):
        real, noise = (torch.randn(64, 512, device=device) for _ in range(2))
        fake = generator(noise).detach()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)
        loss.backward()
        optimizers[1].step()
        optimizers[1].zero_grad()
        (-critic(generator(noise)).mean()).backward()
        optimizers[0].step()
        for optimizer in optimizers:
            optimizer.zero_grad()
    print("steps: 50")


if __name__ == "__main__":
    main()
