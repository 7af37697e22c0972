"""A layer that knows its model by object.__setattr__(), so that the model does
not become a submodule of its own layer."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1024, 1024, device=device))
        object.__setattr__(self, "scale", 0.5)

    def attach(self, model):
        object.__setattr__(self, "model", weakref.ref(model))
        object.__setattr__(self, "attached", True)

    def forward(self, x):
        return x @ self.weight * self.scale * self.model().gain


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = 2.0
        self.layer = Layer()
        self.layer.attach(self)


def main():
    model = Model()
    print("output:", model.layer(torch.ones(1, 1024, device=device)).sum().item())
    del model
    gc.collect()


if __name__ == "__main__":
    main()
