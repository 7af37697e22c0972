"""A doubly linked list of states, in slots."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class State:
    __slots__ = ("hidden", "next", "prev")

    def __init__(self, hidden, prev):
        self.hidden = hidden
        self.prev = prev
        self.next = None
        if prev is not None:
            prev.next = self


def main():
    first = State(torch.zeros(1024, 1024, device=device), None)
    second = State(None, first)
    print("linked:", first.next is second)
    del first, second
    gc.collect()


if __name__ == "__main__":
    main()
