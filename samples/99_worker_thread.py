"""Batches made by a thread point back to their queue."""

import gc
import threading

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Batch:
    def __init__(self, owner):
        self.owner = owner


class Prefetcher:
    def __init__(self):
        self.ready = []

    def fill(self):
        self.x = torch.zeros(1024, 1024, device=device)
        self.ready.append(Batch(self))


def main():
    prefetcher = Prefetcher()
    thread = threading.Thread(target=prefetcher.fill)
    thread.start()
    thread.join()
    print("ready:", len(prefetcher.ready))
    del prefetcher, thread
    gc.collect()


if __name__ == "__main__":
    main()
