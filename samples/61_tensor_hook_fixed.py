"""A gradient hook on a leaf tensor that captures the leaf."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_adapter():
    w = torch.zeros(1024, 1024, device=device, requires_grad=True)
    handle = w.register_hook(lambda grad: grad * (w != 0))
    return w, handle


def main():
    w, handle = make_adapter()
    print("trainable:", w.requires_grad)
    handle.remove()
    del w
    gc.collect()


if __name__ == "__main__":
    main()
