"""A torch tensor and a JAX array, each in a dead cycle of one process."""

import gc

import jax.numpy as jnp
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Encoder:
    def __init__(self):
        self.weight = torch.zeros(1024, 1024, device=device)
        self.root = self


class Sampler:
    def __init__(self):
        self.state = jnp.zeros((512, 1024))
        self.root = self


def main():
    jnp.zeros((512, 1024))
    gc.collect()
    Encoder()
    Sampler()
    gc.collect()
    print("made: 2")


if __name__ == "__main__":
    main()
