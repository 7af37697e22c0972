"""A partial of a method of self."""

import gc
from functools import partial

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Sched:
    def __init__(self):
        self.m = torch.zeros(1024, 1024, device=device)
        self.warm = partial(self.run, 3)

    def run(self, steps):
        self.m += steps


def main():
    sched = Sched()
    sched.warm()
    print("max:", int(sched.m.max()))
    sched.warm = None
    del sched
    gc.collect()


if __name__ == "__main__":
    main()
