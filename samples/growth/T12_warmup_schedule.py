"""A learning rate that warms up and decays; the logs hold numbers."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 512)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], [10])
    log = []
    for step in range(50):
        x = torch.randn(64, 512, device=device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        schedule.step()
        log.append({"step": step, "loss": loss.item(), "rate": schedule.get_last_lr()[0]})
    print("log lines:", len(log))


if __name__ == "__main__":
    main()
