"""What a cache and a list have too much is taken out, once they are full."""

import collections

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    cache = collections.OrderedDict()
    last = []
    for step in range(70):
        x = torch.randn(512, 512, device=device)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        cache[step] = x
        if len(cache) > 30:
            cache.popitem(last=False)
        last.append(x * 2)
        if len(last) > 20:
            last.pop(0)
    print("steps: 70")


if __name__ == "__main__":
    main()
