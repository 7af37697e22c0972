"""A table of a class of its own, made by a model that is an entry in it."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Table(dict):
    pass


class Model:
    def __init__(self):
        self.weight = torch.zeros(1024, 1024, device=device)
        self.table = Table()
        self.table["model"] = weakref.ref(self)
        self.table["size"] = 1024


def main():
    model = Model()
    print("entries:", len(model.table))
    del model
    gc.collect()


if __name__ == "__main__":
    main()
