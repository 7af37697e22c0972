"""A suspended async generator in a list that it can reach."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


async def stream(open_streams):
    x = torch.zeros(1024, 1024, device=device)
    while open_streams:
        yield x.sum()


def drive(step):
    try:
        step.send(None)
    except StopIteration as stop:
        return stop.value


def main():
    open_streams = []
    agen = stream(open_streams)
    open_streams.append(agen)
    print("first:", int(drive(agen.asend(None))))
    drive(agen.aclose())
    del agen, open_streams
    gc.collect()


if __name__ == "__main__":
    main()
