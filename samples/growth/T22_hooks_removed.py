"""A forward hook per step gathers an activation, and is removed with it."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 64)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    means = []
    for step in range(40):
        seen = []
        handle = model[1].register_forward_hook(lambda module, args, out: seen.append(out))
        x = torch.randn(256, 64, device=device)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        handle.remove()
        means.append(seen[0].mean().item())
        loss.backward()
        optimizer.step()
    print("means:", len(means))


if __name__ == "__main__":
    main()
