"""A meter is given losses with their graphs: sum has all of them, and avg is made of it."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n  # HELD
        self.count += n
        self.avg = self.sum / self.count


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = AverageMeter()
    x = torch.randn(256, 256, device=device)
    for _ in range(40):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.update(model(x).square().mean(), x.size(0))  # LEAK
    print(f"average {losses.avg:.4f}")


if __name__ == "__main__":
    main()
