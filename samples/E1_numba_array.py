"""A Numba array held by a stage that refers to itself."""

import gc

import numpy
from numba import cuda


class Stage:
    def __init__(self):
        self.buffer = cuda.device_array((1024, 1024), dtype=numpy.float32)
        self.owner = self


def main():
    cuda.device_array(1)
    gc.collect()
    Stage()
    gc.collect()
    print("stages made: 1")


if __name__ == "__main__":
    main()
