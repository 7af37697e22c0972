"""A moving average puts a function of its own in the place of an optimizer's step."""

import gc
import weakref

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def average_after_step(model, optimizer, decay=0.99):
    shadow = [parameter.detach().clone() for parameter in model.parameters()]
    old_step = weakref.WeakMethod(optimizer.step)

    def step(closure=None):
        result = old_step()(closure)
        with torch.no_grad():
            for mean, parameter in zip(shadow, model.parameters()):
                mean.lerp_(parameter, 1 - decay)
        return result

    optimizer.step = step
    return shadow


def main():
    model = nn.Linear(1024, 1024, bias=False, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shadow = average_after_step(model, optimizer)
    model(torch.ones(4, 1024, device=device)).mean().backward()
    optimizer.step()
    print("tensors:", len(shadow))
    del model, optimizer, shadow
    gc.collect()


if __name__ == "__main__":
    main()
