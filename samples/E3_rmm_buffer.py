"""An RMM buffer held by a column that refers to itself."""

import gc

import rmm


class Column:
    def __init__(self):
        self.data = rmm.DeviceBuffer(size=4 << 20)
        self.base = self


def main():
    rmm.DeviceBuffer(size=1)
    gc.collect()
    Column()
    gc.collect()
    print("columns made: 1")


if __name__ == "__main__":
    main()
