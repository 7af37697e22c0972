"""A lambda that calls itself by the name it is stored under."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def step(k, x):
    return x if k == 0 else x @ step(k - 1, x)


def power(n):
    x = torch.eye(1024, device=device)
    return float(step(n, x).trace())


def main():
    print("trace:", power(1))
    gc.collect()


if __name__ == "__main__":
    main()
