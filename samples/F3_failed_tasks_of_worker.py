"""A worker keeps its tasks, one of which failed in a method of its own."""

import asyncio
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Worker:
    def __init__(self):
        self.tasks = {}

    async def run(self, shard):
        x = torch.zeros(1024, 1024, device=device)
        await asyncio.sleep(0)
        x[0] = int(shard)

    async def start(self, shards):
        for shard in shards:
            self.tasks[shard] = asyncio.create_task(self.run(shard))
        await asyncio.wait(self.tasks.values())


async def train():
    worker = Worker()
    await worker.start(["1", "two"])
    print("failed:", sum(task.exception() is not None for task in worker.tasks.values()))


def main():
    asyncio.run(train())
    gc.collect()


if __name__ == "__main__":
    main()
