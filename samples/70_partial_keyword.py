"""The owner is bound by keyword."""

import gc
from functools import partial

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def weigh(value, *, model):
    return value * model.w.sum()


class Model:
    def __init__(self):
        self.w = torch.zeros(1024, 1024, device=device)
        self.loss = partial(weigh, model=self)


def main():
    model = Model()
    print("loss:", float(model.loss(2.0)))
    del model
    gc.collect()


if __name__ == "__main__":
    main()
