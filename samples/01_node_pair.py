"""Nodes that point at each other: four pairs, dead at once."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Node:
    def __init__(self, tensor):
        self.tensor = tensor
        self.link = None


def features():
    return torch.zeros(512, 1024, device=device)


def make_pair():
    a, b = Node(features()), Node(features())
    a.link, b.link = b, a


def main():
    gc.collect()
    for _ in range(4):
        make_pair()
    gc.collect()
    print("pairs made: 4")


if __name__ == "__main__":
    main()
