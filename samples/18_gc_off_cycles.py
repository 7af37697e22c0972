"""The collector is off, as for even step times: found at exit."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Node:
    def __init__(self, tensor):
        self.tensor = tensor
        self.peer = None


def step(i):
    first = Node(torch.zeros(512, 1024, device=device))
    second = Node(None)
    first.peer = second
    second.peer = first
    return i + 1


def main():
    gc.disable()
    for i in range(6):
        done = step(i)
    print("steps:", done)


if __name__ == "__main__":
    main()
