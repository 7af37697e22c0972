"""Encoder and cache know each other; no name says which is back."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Cache:
    def __init__(self, encoder):
        self.encoder = encoder
        self.keys = torch.zeros(1024, 1024, device=device)


class Encoder:
    def __init__(self):
        self.cache = Cache(self)


def main():
    encoder = Encoder()
    print("keys:", len(encoder.cache.keys))
    del encoder
    gc.collect()


if __name__ == "__main__":
    main()
