"""Background tasks are put into a set so that none is lost, and none is taken out when it is done."""

import asyncio

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
background_tasks = set()


async def embed(model, x):
    await asyncio.sleep(0)
    with torch.no_grad():
        return model(x)  # LEAK


async def answer(model, number):
    torch.manual_seed(number)
    task = asyncio.create_task(embed(model, torch.randn(256, 64, device=device)))
    background_tasks.add(task)  # HELD
    await asyncio.sleep(0)


async def serve():
    model = nn.Linear(64, 1024, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(40):
        await answer(model, number)
        optimizer.zero_grad()
        model(torch.randn(16, 64, device=device)).mean().backward()
        optimizer.step()
    print("weight:", round(model.weight.abs().mean().item()))


def main():
    asyncio.run(serve())


if __name__ == "__main__":
    main()
