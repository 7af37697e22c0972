"""A result that hands itself to the append of a list."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Result:
    def __init__(self):
        self.listeners = []
        self.value = None

    def then(self, listener):
        self.listeners.append(listener)

    def set(self, value):
        self.value = value
        for listener in self.listeners:
            listener(self)


def main():
    done = []
    result = Result()
    result.then(done.append)
    result.set(torch.zeros(1024, 1024, device=device))
    print("done:", len(done))
    del done, result
    gc.collect()


if __name__ == "__main__":
    main()
