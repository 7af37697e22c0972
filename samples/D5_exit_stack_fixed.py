"""An exit stack on self that will call a method of self."""

import gc
from contextlib import ExitStack

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Session:
    def __init__(self):
        self.kv = torch.zeros(1024, 1024, device=device)
        self.stack = ExitStack()
        self.stack.callback(self.close)

    def close(self):
        self.kv = None


def main():
    session = Session()
    print("tokens:", len(session.kv))
    session.stack.close()
    del session
    gc.collect()


if __name__ == "__main__":
    main()
