"""A closure over a table that does not hold the closure."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_rows():
    box = {"x": torch.zeros(1024, 1024, device=device)}

    def rows():
        return len(box["x"])

    return rows


def main():
    rows = make_rows()
    print("rows:", rows())
    del rows
    gc.collect()


if __name__ == "__main__":
    main()
