"""Errors are kept in a list; their frames hold CuPy arrays. Needs CuPy and a GPU."""

import cupy
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
failures = []


def normalise(step):
    x = cupy.zeros((512, 1024), dtype=cupy.float32)  # LEAK
    if not float(x.sum()):
        raise ZeroDivisionError(f"norm of batch {step} is zero")
    return x / x.sum()


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(30):
        loss = model(torch.ones(8, 1024, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        try:
            normalise(step)
        except ZeroDivisionError as error:
            failures.append(error)  # HELD
    print("failures:", len(failures))


if __name__ == "__main__":
    main()
