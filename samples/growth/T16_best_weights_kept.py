"""Early stopping: the best weights so far are kept and put back at the end."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    best, lowest = None, float("inf")
    for step in range(40):
        x = torch.randn(64, 256, device=device)
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 0 and loss.item() < lowest:
            lowest = loss.item()
            best = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best)
    print("steps: 40, tensors put back:", len(best))


if __name__ == "__main__":
    main()
