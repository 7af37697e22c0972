"""A nested def stored on self."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Meter:
    def __init__(self):
        self.seen = torch.zeros(1024, 1024, device=device)

        def update(row, value):
            self.seen[row] = value

        self.update = update


def main():
    meter = Meter()
    meter.update(3, 1.0)
    print("sum:", int(meter.seen.sum()))
    meter.update = None
    del meter
    gc.collect()


if __name__ == "__main__":
    main()
