"""A group that is the first of its own members."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Group:
    def __init__(self):
        self.grad = torch.zeros(1024, 1024, device=device)
        self.members = [self]


def main():
    group = Group()
    print("members:", len(group.members))
    del group
    gc.collect()


if __name__ == "__main__":
    main()
