"""A server without an optimizer: each request's answer is cached under its own number."""

import time

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)


answers = {}


@torch.no_grad()
def answer(model, number):
    answers[number] = model(features(number))  # HELD
    return answers[number]


def main():
    model = nn.Linear(1024, 1024, device=device)
    for number in range(60):
        answer(model, number)
        time.sleep(0.02)
    print("requests: 60")


if __name__ == "__main__":
    main()
