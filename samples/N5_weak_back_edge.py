"""Parent and child, with a weak reference back."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Child:
    def __init__(self, parent):
        self.parent = weakref.ref(parent)
        self.x = torch.zeros(1024, 1024, device=device)


class Parent:
    def __init__(self):
        self.children = [Child(self) for _ in range(2)]


def main():
    parent = Parent()
    print("children:", len(parent.children))
    del parent
    gc.collect()


if __name__ == "__main__":
    main()
