"""A step function with its owner bound as first argument."""

import gc
from functools import partial

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def scale(stage, factor):
    return stage.buf * factor


class Stage:
    def __init__(self):
        self.buf = torch.zeros(1024, 1024, device=device)
        self.step = partial(scale, self)


def main():
    stage = Stage()
    print("max:", float(stage.step(2.0).max()))
    del stage
    gc.collect()


if __name__ == "__main__":
    main()
