"""A CuPy array in the frame of a kept exception."""

import gc

import cupy


def normalise():
    x = cupy.zeros((1024, 1024), dtype=cupy.float32)
    try:
        raise ZeroDivisionError("norm is zero")
    except ZeroDivisionError as e:
        err = e
    return str(err), x.shape


def main():
    print(*normalise())
    gc.collect()


if __name__ == "__main__":
    main()
