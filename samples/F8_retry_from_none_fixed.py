"""A retry with half the size, whose last error was None in the same assignment as the size."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def run(size):
    x = torch.zeros(1024, 1024, device=device)
    if size > 2:
        raise RuntimeError("too large")
    return x.sum().item()


def train():
    size, failed = 4, None
    while True:
        try:
            result = run(size), size
            del failed
            return result
        except RuntimeError as error:
            failed = error
            size //= 2


def main():
    print(*train())
    gc.collect()


if __name__ == "__main__":
    main()
