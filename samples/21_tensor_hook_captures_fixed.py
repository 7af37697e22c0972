"""The hook captures a weak reference."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def activation(x):
    y = x * 2
    weak = weakref.ref(y)
    y.register_hook(lambda grad: grad if weak() is None else grad * (weak() != 0))
    return y


def main():
    x = torch.ones(1024, 1024, device=device, requires_grad=True)
    activation(x).sum().backward()
    print("gradient:", tuple(x.grad.shape))
    gc.collect()


if __name__ == "__main__":
    main()
