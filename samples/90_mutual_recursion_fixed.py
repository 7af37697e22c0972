"""Two inner functions that call each other."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def attend(i, n, table):
    return i if i >= n else feed(i + int(table[i, i]), n, table)


def feed(i, n, table):
    return attend(i + 1, n, table)


def count_layers(n):
    table = torch.zeros(1024, 1024, device=device)
    return attend(0, n, table)


def main():
    print("layers:", count_layers(4))
    gc.collect()


if __name__ == "__main__":
    main()
