"""A dead cycle holds only views of weights that live on."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Head:
    def __init__(self, weights):
        self.rows = weights[:256]
        self.owner = self


def main():
    weights = torch.zeros(1024, 1024, device=device)
    for _ in range(3):
        Head(weights)
    gc.collect()
    print("sum:", int(weights.sum()))


if __name__ == "__main__":
    main()
