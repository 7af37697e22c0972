"""The hook sits on a submodule and captures the whole model."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 1024, device=device)
        self.last = None

        def save(module, args, out):
            self.last = out

        self.handle = self.head.register_forward_hook(save)


@torch.no_grad()
def main():
    net = Net()
    net.head(torch.ones(1024, 64, device=device))
    print("saved:", tuple(net.last.shape))
    net.handle.remove()
    del net
    gc.collect()


if __name__ == "__main__":
    main()
