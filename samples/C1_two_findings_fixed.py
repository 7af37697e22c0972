"""Two causes in one program; the larger one comes first."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Ring:
    def __init__(self, rows):
        self.x = torch.zeros(rows, 1024, device=device)
        self.next = weakref.ref(self)


class Loop:
    def __init__(self):
        self.y = torch.zeros(2048, 1024, device=device)
        self.hook = weakref.WeakMethod(self.step)

    def step(self):
        return self.y


def main():
    gc.collect()
    for _ in range(3):
        Ring(512)
    Loop()
    gc.collect()
    print("done")


if __name__ == "__main__":
    main()
