"""A tree of dataclasses with slots; no file has the line that stores the parent."""

from dataclasses import dataclass, field
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(slots=True, eq=False)
class Node:
    value: torch.Tensor
    parent: "Node" = None
    children: list = field(default_factory=list)

    def add(self, value):
        self.children.append(Node(value, parent=self))


def main():
    root = Node(torch.zeros(1024, 1024, device=device))
    root.add(torch.zeros(4, device=device))
    print("children:", len(root.children))
    for child in root.children:
        child.parent = None
    del root
    gc.collect()


if __name__ == "__main__":
    main()
