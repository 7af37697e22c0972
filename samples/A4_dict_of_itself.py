"""Settings whose items are attributes too: the dict is its own __dict__."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Settings(dict):
    def __init__(self, **values):
        super().__init__(values)
        self.__dict__ = self


def run(step):
    settings = Settings(step=step)
    settings.weights = torch.full((512, 512), 0.5, device=device)
    return settings["weights"].mean().item() * settings.step


def main():
    total = 0.0
    for step in range(4):
        total += run(step)
    gc.collect()
    print("total:", total)


if __name__ == "__main__":
    main()
