"""A thread of one's own that hands its method to threading.Thread."""

import threading
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Loader(threading.Thread):
    def __init__(self):
        self.batch = torch.zeros(1024, 1024, device=device)
        super().__init__(name="loader", kwargs={"loader": self})


def main():
    loader = Loader()
    print("rows:", len(loader.batch))
    loader._kwargs.clear()
    del loader
    gc.collect()


if __name__ == "__main__":
    main()
