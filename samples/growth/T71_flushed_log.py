"""What flush() has written down it begins anew: a dict of lists."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"

log = {"inputs": [], "steps": []}


def flush():
    global log
    print("spread:", len(log["steps"]), torch.stack(log["inputs"]).std().item() > 0)
    log = {"inputs": [], "steps": []}


def main():
    torch.manual_seed(0)
    model = nn.Linear(64, 8).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(80):
        x = torch.randn(4096, 64, device=device)
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        log["inputs"].append(x)
        log["steps"].append(step)
        if (step + 1) % 16 == 0:
            flush()


if __name__ == "__main__":
    main()
