"""A dataclass whose back reference is set later than its default."""

from dataclasses import dataclass, field
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Layer:
    weight: torch.Tensor
    net: object = None


@dataclass
class Net:
    layers: list = field(default_factory=list)

    def add(self, layer):
        layer.net = self
        self.layers.append(layer)


def main():
    net = Net()
    net.add(Layer(torch.zeros(1024, 1024, device=device)))
    print(len(net.layers))
    del net
    gc.collect()


if __name__ == "__main__":
    main()
