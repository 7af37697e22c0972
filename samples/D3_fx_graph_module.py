"""A traced module and its graph: a cycle that torch makes."""

import gc

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    traced = torch.fx.symbolic_trace(nn.Linear(1024, 1024, device=device))
    print("nodes:", len(traced.graph.nodes))
    del traced
    gc.collect()


if __name__ == "__main__":
    main()
