"""A mock with a tensor: a cycle that the standard library makes."""

import gc
from unittest import mock

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    model = mock.MagicMock(return_value=torch.zeros(1024, 1024, device=device))
    print("shape:", tuple(model("prompt").shape))
    del model
    gc.collect()


if __name__ == "__main__":
    main()
