"""A generator expression on an object, over a generator of that object."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Walker:
    def __init__(self):
        self.table = torch.zeros(1024, 1024, device=device)
        self.sums = (row.sum() for row in self.rows())

    def rows(self):
        for number in range(4):
            yield self.table[number] * 2


def main():
    walker = Walker()
    print(float(next(walker.sums)))
    del walker
    gc.collect()


if __name__ == "__main__":
    main()
