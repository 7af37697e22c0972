"""A lambda on self that captures a number, not self."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Scaler:
    def __init__(self, factor):
        self.x = torch.zeros(1024, 1024, device=device)
        self.cb = lambda grad: grad * factor


def main():
    scaler = Scaler(0.5)
    print("scaled:", float(scaler.cb(scaler.x).sum()))
    del scaler
    gc.collect()


if __name__ == "__main__":
    main()
