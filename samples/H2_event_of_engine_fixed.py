"""An engine whose event, a class of its own, is told to call it back."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Event:
    def __init__(self):
        self.handlers = []

    def __iadd__(self, handler):
        self.handlers.append(handler)
        return self

    def fire(self):
        for handler in self.handlers:
            handler()


class Engine:
    def __init__(self):
        self.state = torch.zeros(1024, 1024, device=device)
        self.done = Event()
        self_ref = weakref.ref(self)
        self.done += lambda: self_ref().state.add_(1)


def main():
    engine = Engine()
    engine.done.fire()
    print("sum:", engine.state.sum().item())
    del engine
    gc.collect()


if __name__ == "__main__":
    main()
