"""Nobody clears the gradients: they are kept through every forward pass."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(1024, 1024)
        self.layer2 = nn.Linear(1024, 1024)

    def forward(self, x):
        hidden = torch.relu(self.layer1(x))  # ALSO first
        return self.layer2(hidden)  # ALSO second


def main():
    torch.manual_seed(0)
    model = Net().to(device)  # HELD model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    inputs = torch.randn(64, 1024, device=device)
    labels = torch.randn(64, 1024, device=device)
    for _ in range(30):
        pred = model(inputs)
        F.mse_loss(pred, labels).backward()  # LEAK
        optimizer.step()
    print("steps: 30")


if __name__ == "__main__":
    main()
