"""Hooks that a method makes gather what each layer gives, by its name, and nobody empties it."""

import collections

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Features:
    def __init__(self, net, names):
        self.rows = collections.defaultdict(list)
        for name, module in net.named_modules():
            if name in names:
                module.register_forward_hook(self.make_hook(name))

    def make_hook(self, name):
        def hook(module, args, out):
            self.rows[name].append(out)  # HELD

        return hook


def main():
    net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 10)).to(device)
    features = Features(net, {"0", "2"})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(40):
        torch.manual_seed(step)
        x = torch.randn(256, 64, device=device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), x.argmax(1) % 10)  # LEAK
        (loss + 1e-4 * features.rows["2"][-1].square().mean()).backward()
        optimizer.step()
    print("layers:", len(features.rows))


if __name__ == "__main__":
    main()
