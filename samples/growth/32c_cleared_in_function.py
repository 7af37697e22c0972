"""The gradients of three layers are cleared too late, in a function that is given the model."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(1024, 1024)
        self.layer2 = nn.Linear(1024, 1024)
        self.layer3 = nn.Linear(1024, 512)

    def forward(self, x):
        hidden = torch.relu(self.layer1(x))  # ALSO first
        hidden = torch.relu(self.layer2(hidden))  # ALSO second
        return self.layer3(hidden)  # ALSO third


def train(model, opt):
    for step in range(30):
        torch.manual_seed(step)
        loss = model(torch.randn(64, 1024, device=device)).square().mean()
        opt.zero_grad()
        loss.backward()  # LEAK
        opt.step()
    print("steps: 30")


net = Net().to(device)
train(net, torch.optim.SGD(net.parameters(), lr=0.01))
