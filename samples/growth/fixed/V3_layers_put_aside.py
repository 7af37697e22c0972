"""The head is renewed in every step; the old ones stay in a ModuleList, and in the optimizer."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 512)
        self.head = nn.Linear(512, 512)
        self.out = nn.Linear(512, 10)

    def renew_head(self):
        self.head = nn.Linear(512, 512, device=device)

    def forward(self, x):
        return self.out(torch.relu(self.head(torch.relu(self.up(x)))))


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        torch.manual_seed(step)
        x = torch.randn(64, 16, device=device)
        loss = F.cross_entropy(model(x), x.argmax(dim=1) % 10)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        model.renew_head()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print("heads: 40")


if __name__ == "__main__":
    main()
