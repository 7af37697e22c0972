"""A cache of which each entry names it, in a tuple."""

from collections import namedtuple
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
Entry = namedtuple("Entry", "cache value")


class Cache:
    def __init__(self):
        self.entries = {}

    def put(self, key, value):
        self.entries[key] = Entry(self, value)

    def total(self):
        return sum(entry.value.numel() for entry in self.entries.values())


def main():
    cache = Cache()
    cache.put("a", torch.zeros(1024, 1024, device=device))
    print("numbers:", cache.total(), cache.entries["a"].cache is cache)
    del cache
    gc.collect()


if __name__ == "__main__":
    main()
