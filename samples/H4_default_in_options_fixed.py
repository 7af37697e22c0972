"""Options that keep a function with a default argument, for their owner."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Options:
    def __init__(self, **options):
        self.__dict__.update(options)


class Engine:
    def __init__(self):
        self.state = torch.ones(1024, 1024, device=device)
        self.options = Options(
            total=lambda me=weakref.ref(self): me().state.sum().item())


def main():
    engine = Engine()
    print("sum:", engine.options.total())
    del engine
    gc.collect()


if __name__ == "__main__":
    main()
