"""A head that has its model in a list, behind a weak reference."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Head(torch.nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self._backbone = [weakref.ref(backbone)]
        self.out = torch.nn.Linear(1024, 16, device=device)

    def forward(self, x):
        return self.out(self._backbone[0]().encode(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(1024, 1024, bias=False, device=device)
        self.head = Head(self)

    def encode(self, x):
        return self.encoder(x)

    def forward(self, x):
        return self.head(x)


def main():
    model = Model()
    print("out:", model(torch.ones(2, 1024, device=device)).shape[1])
    del model
    gc.collect()


if __name__ == "__main__":
    main()
