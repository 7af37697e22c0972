"""A memo that a layer has, of which the keys name the layer."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Memo:
    def __init__(self):
        self.known = {}

    def get(self, key, compute):
        if key not in self.known:
            self.known[key] = compute()
        return self.known[key]


class Layer:
    def __init__(self, memo):
        self.memo = memo
        self.weight = torch.ones(1024, 1024, device=device)

    def total(self):
        return self.memo.get((self, "sum"), self.weight.sum().item)


def main():
    layer = Layer(Memo())
    print("sum:", layer.total(), layer.total(), len(layer.memo.known))
    del layer
    gc.collect()


if __name__ == "__main__":
    main()
