"""An object that keeps its super()."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Base:
    def name(self):
        return "base"


class Model(Base):
    def __init__(self):
        self.weight = torch.zeros(1024, 1024, device=device)
        self.base = super()

    def name(self):
        return "model of " + self.base.name()


def main():
    model = Model()
    print(model.name())
    del model
    gc.collect()


if __name__ == "__main__":
    main()
