"""Two inner functions that call each other."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def count_layers(n):
    table = torch.zeros(1024, 1024, device=device)

    def attend(i):
        return i if i >= n else feed(i + int(table[i, i]))

    def feed(i):
        return attend(i + 1)

    return attend(0)


def main():
    print("layers:", count_layers(4))
    gc.collect()


if __name__ == "__main__":
    main()
