"""Links that one assignment first sets to None, beside the payload."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Stage:
    def __init__(self, table):
        self.table, self.next, self.previous = table, None, None


def make_pair():
    first = Stage(torch.zeros(1024, 1024, device=device))
    second = Stage(first.table[:1])
    first.next, second.previous = second, weakref.ref(first)
    return first


def main():
    first = make_pair()
    print(len(first.next.table))
    del first
    gc.collect()


if __name__ == "__main__":
    main()
