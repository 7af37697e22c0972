"""Every epoch trains a new head, and the optimizer is given its parameters."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def train_epoch(body, head, optimizer, epoch):
    for step in range(2):
        torch.manual_seed(2 * epoch + step)
        x = torch.randn(64, 16, device=device)
        loss = F.cross_entropy(head(torch.relu(body(x))), x.argmax(dim=1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    body = nn.Linear(16, 512).to(device)
    optimizer = torch.optim.Adam(body.parameters())
    for epoch in range(24):
        head = nn.Linear(512, 512, device=device)
        optimizer.add_param_group({"params": head.parameters()})
        train_epoch(body, head, optimizer, epoch)
        del optimizer.param_groups[1:]
        for parameter in head.parameters():
            del optimizer.state[parameter]
    print("heads: 24")


if __name__ == "__main__":
    main()
