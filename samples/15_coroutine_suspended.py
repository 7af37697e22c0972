"""A coroutine that waits for ever, held by its own waiting list."""

import gc
import types

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


@types.coroutine
def pause():
    yield


async def fetch(waiting):
    x = torch.zeros(1024, 1024, device=device)
    while waiting:
        await pause()
    return x


def main():
    waiting = []
    job = fetch(waiting)
    waiting.append(job)
    job.send(None)
    del job, waiting
    gc.collect()
    print("started: 1")


if __name__ == "__main__":
    main()
