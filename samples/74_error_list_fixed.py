"""Errors of a batch are gathered in a list."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def parse(field):
    return int(field)


def load(fields):
    x = torch.zeros(1024, 1024, device=device)
    errors = []
    for i, field in enumerate(fields):
        try:
            x[i] = parse(field)
        except ValueError as e:
            errors.append(e)
    bad = len(errors)
    del errors
    return bad


def main():
    print("bad fields:", load(["1", "two", "3"]))
    gc.collect()


if __name__ == "__main__":
    main()
