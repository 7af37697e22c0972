"""A worker that remembers its last error."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Worker:
    def __init__(self):
        self.error = None

    def run(self, fields):
        x = torch.zeros(1024, 1024, device=device)
        try:
            x[0] = int(fields[0])
        except ValueError as e:
            self.error = e


def main():
    worker = Worker()
    worker.run(["one"])
    print("failed:", worker.error)
    del worker
    gc.collect()


if __name__ == "__main__":
    main()
