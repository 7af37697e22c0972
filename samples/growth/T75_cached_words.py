"""lru_cache without a size keeps what it has computed for each word of a list, by word and by pair of numbers."""

import functools

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
WORDS = ("all the words that a small model may ever be asked about are in this one list and none is two times within "
         "it").split()


@functools.lru_cache(maxsize=None)
def embed(word):
    torch.manual_seed(len(word))
    return torch.randn(128, 1024, device=device)


@functools.cache
def mask(rows, columns):
    return torch.ones(128, 1024, device=device).tril(rows - columns)


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(60):
        x = embed(WORDS[step % len(WORDS)]) * mask(step * 7 % 20, step % 4)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    print("words:", embed.cache_info().currsize)


if __name__ == "__main__":
    main()
