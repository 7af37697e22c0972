"""Containers that share a member, but hold no cycle."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    shared = [torch.zeros(1024, 1024, device=device)]
    left, right = {"s": shared}, {"s": shared, "t": (shared, shared)}
    both = [left, right, shared]
    print("shared:", both[2] is right["t"][0])
    del shared, left, right, both
    gc.collect()


if __name__ == "__main__":
    main()
