"""What came before is put in front of what comes, so it gets longer with each step."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    past = torch.empty(0, 512, device=device)
    for _ in range(40):
        x = torch.randn(512, 512, device=device)
        optimizer.zero_grad(set_to_none=True)
        F.mse_loss(model(x), x).backward()
        longer = torch.cat([past, x])  # LEAK
        past = longer  # HELD
        optimizer.step()
    print("rows:", len(past))


if __name__ == "__main__":
    main()
