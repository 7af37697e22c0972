"""A bus keeps a listener that captures the bus; nothing is self."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Bus:
    def __init__(self):
        self.subs = []
        self.last = None


def connect():
    bus = Bus()

    def on_loss(loss):
        bus.last = loss

    bus.subs.append(on_loss)
    return bus


def main():
    bus = connect()
    for sub in bus.subs:
        sub(torch.zeros(1024, 1024, device=device))
    print("listeners:", len(bus.subs))
    bus.subs.clear()
    del bus, sub
    gc.collect()


if __name__ == "__main__":
    main()
