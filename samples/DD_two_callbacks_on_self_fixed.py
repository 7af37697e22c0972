"""An application that gives itself two handlers, a method and a lambda."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class App:
    def __init__(self):
        self.state = torch.zeros(1024, 1024, device=device)
        self.on_save = self.save
        self.on_stop = lambda: self.save()

    def save(self):
        return self.state.sum().item()


def main():
    app = App()
    print("saved:", app.on_save(), app.on_stop())
    app.on_stop = app.on_save = None
    del app
    gc.collect()


if __name__ == "__main__":
    main()
