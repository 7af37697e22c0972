"""Blocks in a ModuleList, each with the model in a list, where torch does not look."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Block(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = [model]
        self.weight = torch.nn.Parameter(torch.zeros(512, 1024, device=device))

    def forward(self, x):
        return x @ self.weight.T @ self.weight * self.model[0].gain


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = 2.0
        self.blocks = torch.nn.ModuleList([Block(self) for _ in range(2)])


def main():
    model = Model()
    print("output:", model.blocks[1](torch.ones(1, 1024, device=device)).sum().item())
    del model
    gc.collect()


if __name__ == "__main__":
    main()
