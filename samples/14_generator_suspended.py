"""A suspended generator that is registered in its own argument."""

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def batches(pool):
    x = torch.zeros(1024, 1024, device=device)
    while pool:
        yield x.sum()


def main():
    pool = []
    loader = batches(pool)
    pool.append(loader)
    print("first:", int(next(loader)))


if __name__ == "__main__":
    main()
