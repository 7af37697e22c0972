"""A suspended async generator in a list that it can reach."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


async def stream(open_streams):
    x = torch.zeros(1024, 1024, device=device)
    while open_streams:
        yield x.sum()


def first(agen):
    try:
        agen.asend(None).send(None)
    except StopIteration as stop:
        return int(stop.value)


def main():
    open_streams = []
    agen = stream(open_streams)
    open_streams.append(agen)
    print("first:", first(agen))
    del agen, open_streams
    gc.collect()


if __name__ == "__main__":
    main()
