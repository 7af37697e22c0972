"""Equal cycles of four collections are one finding."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Cell:
    def __init__(self, rows):
        self.h = torch.zeros(rows, 1024, device=device)
        self.owner = weakref.ref(self)


def main():
    for _ in range(4):
        Cell(1024)
        gc.collect()
    print("cells: 4")


if __name__ == "__main__":
    main()
