"""A loader's error comes back through a future, and goes round by its frame."""

from concurrent.futures import ThreadPoolExecutor
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def load(shard):
    raise OSError(f"{shard} is not there")


def fetch(pool):
    batch = torch.zeros(1024, 1024, device=device)
    future = pool.submit(load, "shard-0")
    try:
        batch += future.result()
    except OSError as error:
        print("skipped:", error)


def main():
    with ThreadPoolExecutor(1) as pool:
        fetch(pool)
    gc.collect()


if __name__ == "__main__":
    main()
