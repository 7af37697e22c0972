"""An exception kept in a local of the frame that caught it."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def check(x):
    if not x.any():
        raise ValueError("all zero")


def evaluate():
    x = torch.zeros(1024, 1024, device=device)
    try:
        check(x.sum(dim=0))
    except ValueError as e:
        err = e
    text = str(err)
    del err
    return text


def main():
    print(evaluate())
    gc.collect()


if __name__ == "__main__":
    main()
