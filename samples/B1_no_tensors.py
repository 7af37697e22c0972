"""Many dead cycles, none of which holds a tensor."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Node:
    def __init__(self, payload):
        self.payload = payload
        self.me = self


def main():
    x = torch.ones(1024, 1024, device=device)
    for i in range(1000):
        Node(float(x[0, i % 1024]))
    gc.collect()
    print("sum:", int(x.sum()))


if __name__ == "__main__":
    main()
