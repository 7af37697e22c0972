"""A method of its own stored as a hook of the loop."""

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Loop:
    def __init__(self):
        self.buf = []
        self.hook = self.log

    def log(self, loss):
        self.buf.append(loss)


def main():
    loop = Loop()
    loop.hook(torch.zeros(1024, 1024, device=device))
    print("logged:", len(loop.buf))


if __name__ == "__main__":
    main()
