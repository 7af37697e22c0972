"""A loader keeps the iterator over its own method."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Loader:
    def __init__(self):
        self.it = self.batches()

    def batches(self):
        x = torch.zeros(1024, 1024, device=device)
        for i in range(len(x)):
            yield int(x[i].sum())

    def next(self):
        return next(self.it)


def main():
    loader = Loader()
    print("sum:", loader.next())
    loader.it.close()
    del loader
    gc.collect()


if __name__ == "__main__":
    main()
