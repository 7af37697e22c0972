"""JAX arrays in nodes that point at each other."""

import gc
import weakref

import jax.numpy as jnp


class Node:
    def __init__(self, array):
        self.array = array
        self.link = None


def features():
    return jnp.zeros((512, 1024))


def make_pair():
    a, b = Node(features()), Node(features())
    a.link, b.link = weakref.ref(b), weakref.ref(a)


def main():
    features()
    gc.collect()
    make_pair()
    gc.collect()
    print("pairs made: 1")


if __name__ == "__main__":
    main()
