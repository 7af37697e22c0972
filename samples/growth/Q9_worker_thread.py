"""A worker thread keeps what it was sent."""

import queue
import threading

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def features(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)  # LEAK


def gather(inbox):
    kept = []
    while True:
        x = inbox.get()
        kept.append(x)  # HELD
        inbox.task_done()
        if x is None:
            break


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inbox = queue.Queue()
    worker = threading.Thread(target=gather, args=(inbox,))
    worker.start()
    for step in range(40):
        x = features(step)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        inbox.put(x)
        inbox.join()
    inbox.put(None)
    worker.join()
    print("steps: 40")


if __name__ == "__main__":
    main()
