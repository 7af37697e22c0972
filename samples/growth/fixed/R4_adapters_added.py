"""A new adapter is added to the model in every step, and none is dropped."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)
        self.adapters = nn.ModuleList()

    def adapt(self):
        self.adapters = nn.ModuleList()
        self.adapters.append(nn.Linear(512, 512, device=device))

    def forward(self, x):
        return self.layer(x) + self.adapters[-1](x)


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.layer.parameters(), lr=0.01)
    for step in range(40):
        model.adapt()
        loss = model(torch.ones(8, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        model.zero_grad(set_to_none=True)
    print("adapters made: 40")


if __name__ == "__main__":
    main()
