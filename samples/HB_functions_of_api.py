"""Two functions over one table, in which the object that has them stands."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Api:
    pass


def build():
    table = {"w": torch.zeros(1024, 1024, device=device)}

    def get():
        return table["w"]

    def add(number):
        table["w"] += number

    api = Api()
    api.get, api.add = get, add
    table["api"] = api
    return table


def main():
    table = build()
    table["api"].add(1)
    print("sum:", table["api"].get().sum().item())
    del table
    gc.collect()


if __name__ == "__main__":
    main()
