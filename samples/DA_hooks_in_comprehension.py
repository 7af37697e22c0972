"""Hooks on all children of a model, registered in a comprehension."""

from functools import partial
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Features:
    def __init__(self, model):
        self.model = model
        self.seen = {}
        self.handles = [child.register_forward_hook(partial(self.keep, name))
                        for name, child in model.named_children()]

    def keep(self, name, module, args, output):
        self.seen[name] = output.detach()


def main():
    model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
    features = Features(model)
    model(torch.zeros(1024, 1024, device=device))
    print("seen:", *features.seen)
    del model, features
    gc.collect()


if __name__ == "__main__":
    main()
