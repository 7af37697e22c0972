"""A cycle that gc.freeze() made permanent, then dropped."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Warmup:
    def __init__(self):
        self.x = torch.zeros(1024, 1024, device=device)
        self.root = weakref.ref(self)


def main():
    warmup = Warmup()
    gc.freeze()
    del warmup
    gc.collect()
    print("frozen:", gc.get_freeze_count() > 0)


if __name__ == "__main__":
    main()
