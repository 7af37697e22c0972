"""An inner function that calls itself."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def walk(i, depth, table):
    if i == depth:
        return int(table[i].sum())
    return 1 + walk(i + 1, depth, table)


def tree_sum(depth):
    table = torch.zeros(1024, 1024, device=device)
    return walk(0, depth, table)


def main():
    print("sum:", tree_sum(5))
    gc.collect()


if __name__ == "__main__":
    main()
