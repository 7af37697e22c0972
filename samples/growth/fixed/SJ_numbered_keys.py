"""Answers are kept under the number of their request modulo 8."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
answers = {}


def answer(model, number):
    x = torch.randn(256, 512, device=device)
    answers["request %d" % (number % 8)] = model(x).detach()
    return x


def main():
    model = nn.Linear(512, 1024, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(40):
        optimizer.zero_grad()
        model(answer(model, number)).square().mean().backward()
        optimizer.step()
    print("answers:", len(answers))


if __name__ == "__main__":
    main()
