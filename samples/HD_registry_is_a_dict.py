"""A registry that is a dict itself; each of its items knows it."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Registry(dict):
    def add(self, name):
        self[name] = Adapter(self, name)


class Adapter:
    def __init__(self, registry, name):
        self.registry = registry
        self.name = name
        self.weight = torch.zeros(1024, 1024, device=device)


def main():
    registry = Registry()
    registry.add("query")
    registry.add("value")
    print("adapters:", len(registry))
    del registry
    gc.collect()


if __name__ == "__main__":
    main()
