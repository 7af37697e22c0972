"""A helper hooks a layer before each step, and is back before the layer runs."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 512)
        self.down = nn.Linear(512, 10)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def watch(layer):
    seen = {}

    def remember(module, inputs, output):
        seen.setdefault("output", output.detach())

    return seen, layer.register_forward_hook(remember)


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    means = []
    for step in range(40):
        torch.manual_seed(step)
        x = torch.randn(512, 16, device=device)
        seen, handle = watch(model.up)
        F.cross_entropy(model(x), x.argmax(dim=1) % 10).backward()
        handle.remove()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        means.append(seen["output"].mean().item())
    print("means:", len(means))


if __name__ == "__main__":
    main()
