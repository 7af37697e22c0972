"""Looks like A4: each object has the other's items, and none its own."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Settings(dict):
    def __init__(self, **values):
        super().__init__(values)
        self.__dict__ = dict(values)


def run(step):
    first = Settings(step=step)
    first.weights = torch.full((512, 512), 0.5, device=device)
    second = Settings()
    second.__dict__ = first.__dict__
    return second.weights.mean().item() * second.step


def main():
    total = 0.0
    for step in range(4):
        total += run(step)
    gc.collect()
    print("total:", total)


if __name__ == "__main__":
    main()
