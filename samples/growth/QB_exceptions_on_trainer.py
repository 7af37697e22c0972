"""Errors are kept on an object; their frames hold the batch."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)  # LEAK


class Log:
    errors = []


log = Log()


def check(x):
    rows = len(x)
    if rows != 255:
        raise ValueError(f"{rows} rows, not 255")


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        x = features(step)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        try:
            check(x)
        except ValueError as error:
            log.errors.append(error)  # HELD
    print("steps: 40")


if __name__ == "__main__":
    main()
