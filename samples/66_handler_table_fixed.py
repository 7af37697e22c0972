"""A table of handlers, keyed by event, that are methods of self."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Engine:
    def __init__(self):
        self.keep = []
        self.on = {"loss": self.on_loss}

    def on_loss(self, loss):
        self.keep.append(loss)


def main():
    engine = Engine()
    engine.on["loss"](torch.zeros(1024, 1024, device=device))
    print("events:", len(engine.keep))
    engine.on.clear()
    del engine
    gc.collect()


if __name__ == "__main__":
    main()
