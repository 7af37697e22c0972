"""A partial that binds another object: no cycle."""

import gc
from functools import partial

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Weights:
    def __init__(self):
        self.w = torch.zeros(1024, 1024, device=device)


def total(weights, factor):
    return weights.w.sum() * factor


class Report:
    def __init__(self, weights):
        self.total = partial(total, weights, 2.0)


def main():
    report = Report(Weights())
    print("total:", float(report.total()))
    del report
    gc.collect()


if __name__ == "__main__":
    main()
