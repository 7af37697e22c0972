"""A bound method stored on another object: no cycle."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Store:
    def __init__(self):
        self.x = torch.zeros(1024, 1024, device=device)

    def put(self, row, value):
        self.x[row] = value


class Loop:
    def __init__(self, store):
        self.on_step = store.put


def main():
    loop = Loop(Store())
    loop.on_step(0, 1.0)
    print("stepped")
    del loop
    gc.collect()


if __name__ == "__main__":
    main()
