"""A generator that ran to its end holds nothing."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def batches(pool):
    x = torch.zeros(1024, 1024, device=device)
    for _ in range(2):
        yield int(x.sum()) + len(pool)


def main():
    pool = []
    loader = batches(pool)
    pool.append(loader)
    print("batches:", list(loader))
    del pool, loader
    gc.collect()


if __name__ == "__main__":
    main()
