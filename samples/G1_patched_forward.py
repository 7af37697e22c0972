"""A layer whose forward is replaced from outside, the old one kept beside it."""

import gc
import types

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def scaled_forward(self, x):
    return self.plain_forward(x) * 2


def scale(layer):
    layer.plain_forward = layer.forward
    layer.forward = types.MethodType(scaled_forward, layer)


def main():
    layer = torch.nn.Linear(1024, 1024, device=device)
    scale(layer)
    print(tuple(layer(torch.ones(2, 1024, device=device)).shape))
    del layer
    gc.collect()


if __name__ == "__main__":
    main()
