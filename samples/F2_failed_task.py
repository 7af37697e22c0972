"""A task failed; who awaited it keeps it, and it keeps who awaited it."""

import asyncio
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


async def load(shard):
    await asyncio.sleep(0)
    raise OSError(f"{shard} is not there")


async def step():
    batch = torch.zeros(1024, 1024, device=device)
    task = asyncio.create_task(load("shard-0"))
    try:
        batch += await task
    except OSError as error:
        print("skipped:", error)


def main():
    asyncio.run(step())
    gc.collect()


if __name__ == "__main__":
    main()
