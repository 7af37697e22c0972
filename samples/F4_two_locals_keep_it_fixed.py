"""All errors of a batch in a list, and the last one beside it."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def load(fields):
    x = torch.zeros(1024, 1024, device=device)
    errors = []
    last = None
    for i, field in enumerate(fields):
        try:
            x[i] = int(field)
        except ValueError as error:
            errors.append(error)
            last = error
    print("bad fields:", len(errors), "last:", last)
    del errors, last


def main():
    load(["1", "two", "three"])
    gc.collect()


if __name__ == "__main__":
    main()
