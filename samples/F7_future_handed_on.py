"""A future's error is told without its traceback, and the future handed on."""

from concurrent.futures import Future
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def fetch():
    batch = torch.zeros(1024, 1024, device=device)
    future = Future()
    try:
        batch[0] = int("one")
    except ValueError as error:
        future.set_exception(error.with_traceback(None))
    return future


def main():
    print("failed:", fetch().exception())
    gc.collect()


if __name__ == "__main__":
    main()
