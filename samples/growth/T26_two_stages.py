"""An autoencoder is trained, then a classifier on its encoder, with an optimizer of its own."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_part():
    return nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).to(device)


def pretrain(encoder):
    decoder = make_part()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
    for _ in range(40):
        optimizer.zero_grad()
        x = torch.randn(64, 512, device=device)
        F.mse_loss(decoder(encoder(x)), x).backward()
        optimizer.step()
    optimizer.zero_grad()


def finetune(encoder):
    head = nn.Linear(512, 10).to(device)
    groups = [{"params": encoder.parameters(), "lr": 1e-3}, {"params": head.parameters(), "lr": 1e-2}]
    optimizer = torch.optim.SGD(groups, momentum=0.9)
    for _ in range(60):
        optimizer.zero_grad()
        x, y = torch.randn(64, 512, device=device), torch.randint(0, 10, (64,), device=device)
        loss = F.cross_entropy(head(encoder(x)), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    encoder = make_part()
    pretrain(encoder)
    print(f"loss {finetune(encoder):.4f}")


if __name__ == "__main__":
    main()
