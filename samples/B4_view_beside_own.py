"""A dead cycle holds a view of live weights and a tensor of its own."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Head:
    def __init__(self, weights):
        self.rows = weights[:512]
        self.bias = torch.zeros(512, 1024, device=device)
        self.owner = self


def main():
    weights = torch.zeros(1024, 1024, device=device)
    Head(weights)
    gc.collect()
    print("sum:", int(weights.sum()))


if __name__ == "__main__":
    main()
