"""A finalizer brings the session back: it did not die."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


KEPT = []


class Session:
    def __init__(self):
        self.x = torch.zeros(1024, 1024, device=device)
        self.owner = self

    def __del__(self):
        KEPT.append(self)


def main():
    Session()
    gc.collect()
    print("kept:", len(KEPT))


if __name__ == "__main__":
    main()
