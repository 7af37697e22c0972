"""A closure stored in the very table that it captures."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_state():
    box = {"x": torch.zeros(1024, 1024, device=device)}

    def rows():
        return len(box["x"])

    box["rows"] = rows
    count = rows()
    box.clear()
    return count


def main():
    print("rows:", make_state())
    gc.collect()


if __name__ == "__main__":
    main()
