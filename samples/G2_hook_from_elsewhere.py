"""A hook that a helper registers captures the model it stands in."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def add_probes(model, seen):
    for name, layer in model.named_children():
        def probe(module, args, output, name=name):
            seen[name] = model.training

        layer.register_forward_hook(probe)


def main():
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024, device=device))
    seen = {}
    add_probes(model, seen)
    model(torch.ones(2, 1024, device=device))
    print(seen)
    del model
    gc.collect()


if __name__ == "__main__":
    main()
