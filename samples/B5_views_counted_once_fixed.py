"""Four views of one storage: its bytes count once."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Split:
    def __init__(self):
        self.owner = weakref.ref(self)
        self.parts = torch.zeros(1024, 1024, device=device).chunk(4)


def main():
    split = Split()
    print("parts:", len(split.parts))
    del split
    gc.collect()


if __name__ == "__main__":
    main()
