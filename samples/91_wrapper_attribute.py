"""A memo decorator whose info function captures the wrapper."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def memo(fn):
    saved = {}

    def wrapper(key):
        if key not in saved:
            saved[key] = fn(key)
        return saved[key]

    wrapper.info = lambda: wrapper.__name__ + f": {len(saved)} saved"
    return wrapper


def main():
    embed = memo(lambda key: torch.zeros(1024, 1024, device=device))
    embed("cat")
    print(embed.info())
    del embed
    gc.collect()


if __name__ == "__main__":
    main()
