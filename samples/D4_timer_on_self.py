"""A timer that is kept on self and calls a method of self."""

import gc
import threading

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Saver:
    def __init__(self):
        self.state = torch.zeros(1024, 1024, device=device)
        self.timer = threading.Timer(60, self.flush)

    def flush(self):
        self.state.zero_()


def main():
    saver = Saver()
    saver.flush()
    print("timer runs:", saver.timer.is_alive())
    del saver
    gc.collect()


if __name__ == "__main__":
    main()
