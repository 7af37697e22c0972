"""A big tensor is freed by its reference count: nothing is dead."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    big = torch.zeros(16, 1024, 1024, device=device)
    print("elements:", big.numel())
    del big
    gc.collect()


if __name__ == "__main__":
    main()
