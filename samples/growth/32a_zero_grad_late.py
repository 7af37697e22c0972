"""The gradients are cleared between forward and backward: too late for the forward."""

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
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(30):
        inputs = torch.randn(64, 1024, device=device)
        loss = F.mse_loss(model(inputs), inputs)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # LEAK
        optimizer.step()
    print("steps: 30")


if __name__ == "__main__":
    main()
