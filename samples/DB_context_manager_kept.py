"""A session enters its own context manager and never leaves it."""

from contextlib import contextmanager
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Session:
    def __init__(self):
        self.cache = torch.zeros(1024, 1024, device=device)
        self.scope = self.timing()
        self.scope.__enter__()

    @contextmanager
    def timing(self):
        cache = self.cache
        yield cache


def main():
    session = Session()
    print("rows:", len(session.cache))
    del session
    gc.collect()


if __name__ == "__main__":
    main()
