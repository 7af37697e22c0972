"""Cycles with tensors that a module still reaches: alive."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


REGISTRY = {}


class Model:
    def __init__(self, name):
        self.w = torch.zeros(1024, 1024, device=device)
        self.me = self
        REGISTRY[name] = self


def main():
    for name in ("teacher", "student"):
        Model(name)
    gc.collect()
    print("models:", len(REGISTRY))


if __name__ == "__main__":
    main()
