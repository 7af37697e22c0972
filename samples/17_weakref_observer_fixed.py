"""A weak reference watches a member of a dead cycle."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Node:
    def __init__(self, parent=None):
        self.x = torch.zeros(1024, 1024, device=device)
        self.parent = weakref.ref(parent) if parent else None
        self.child = None


def main():
    gc.collect()
    calls = []
    root = Node()
    root.x = root.x[:1].clone()
    root.child = Node(root)
    watch = weakref.ref(root.child, calls.append)
    print("alive:", watch() is root.child)
    del root
    print("dead at once:", watch() is None, len(calls))


if __name__ == "__main__":
    main()
