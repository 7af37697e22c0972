"""A custom op defined in a function, with its lookup table."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, index):
        return table[index]


def main():
    table = torch.zeros(1024, 1024, device=device)
    index = torch.tensor([1, 2], device=device)
    print(tuple(Lookup.apply(table, index).shape))
    del table
    gc.collect()


if __name__ == "__main__":
    main()
