"""A signal with a weak dictionary of listeners; their methods are strong."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Signal:
    def __init__(self):
        self.slots = weakref.WeakKeyDictionary()

    def connect(self, listener, method):
        self.slots[listener] = weakref.WeakMethod(method)

    def emit(self):
        for method in list(self.slots.values()):
            method()()


class View:
    def __init__(self, signal):
        self.signal = signal
        self.image = torch.zeros(1024, 1024, device=device)
        signal.connect(self, self.refresh)

    def refresh(self):
        self.image += 1


def main():
    view = View(Signal())
    view.signal.emit()
    print("sum:", view.image.sum().item())
    del view
    gc.collect()


if __name__ == "__main__":
    main()
