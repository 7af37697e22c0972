"""A task that waits on its owner's future when the loop is closed."""

import asyncio
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Worker:
    async def run(self):
        x = torch.zeros(1024, 1024, device=device)
        await self.gate
        return x

    async def start(self):
        loop = asyncio.get_running_loop()
        self.gate = loop.create_future()
        self.task = loop.create_task(self.run())
        await asyncio.sleep(0)
        started = not self.task.done()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.task = None
        return started


def main():
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    worker = Worker()
    started = loop.run_until_complete(worker.start())
    loop.close()
    print("started:", started)
    del loop, worker
    gc.collect()


if __name__ == "__main__":
    main()
