"""A client whose stack of things to close closes the client too."""

import asyncio
from contextlib import AsyncExitStack
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Client:
    def __init__(self):
        self.buffer = torch.zeros(1024, 1024, device=device)
        self.stack = AsyncExitStack()
        self.stack.push_async_callback(self.close)

    async def close(self):
        self.closed = True


async def run():
    client = Client()
    print("size:", len(client.buffer))
    await client.stack.aclose()


def main():
    asyncio.run(run())
    gc.collect()


if __name__ == "__main__":
    main()
