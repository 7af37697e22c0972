"""Futures in a list of the object whose method they call back."""

from concurrent.futures import Future
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Evaluator:
    def __init__(self):
        self.weights = torch.zeros(1024, 1024, device=device)
        self.futures = []
        self.scores = []

    def submit(self):
        future = Future()
        future.add_done_callback(self.note)
        self.futures.append(future)
        return future

    def note(self, future):
        self.scores.append(future.result())


def main():
    evaluator = Evaluator()
    evaluator.submit().set_result(3)
    print(evaluator.scores)
    del evaluator
    gc.collect()


if __name__ == "__main__":
    main()
