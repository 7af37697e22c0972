"""A pool that counts its images, a queue with a maxsize behind a slow thread, a metric that reset() makes anew."""

import copy
import queue
import random
import threading

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class ImagePool:
    def __init__(self, size):
        self.size, self.count, self.images = size, 0, []

    def query(self, image):
        if self.count < self.size:
            self.count = self.count + 1
            self.images.append(image)
            return image
        at = random.randrange(self.size)
        old = self.images[at].clone()
        self.images[at] = image
        return old


class Logger:
    def __init__(self):
        self.queue, self.sums, self.dropped = queue.Queue(maxsize=25), [], 0
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for x in iter(self.queue.get, None):
            self.sums.append(x.sum().item())
            self.closing.wait(0.5)

    def log(self, x):
        try:
            self.queue.put_nowait(x)
        except queue.Full:
            self.dropped += 1

    def close(self):
        self.closing.set()
        self.queue.put(None)
        self.thread.join()


class Metric:
    def __init__(self):
        self.defaults = {}

    def add_state(self, name, default):
        self.defaults[name] = default
        setattr(self, name, copy.copy(default))

    def reset(self):
        for name, default in self.defaults.items():
            setattr(self, name, copy.copy(default))


class Error(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("outputs", [])

    def update(self, out):
        self.outputs.append(out)


def main():
    model, pool, logger, error = nn.Linear(512, 512, device=device), ImagePool(25), Logger(), Error()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(120):
        optimizer.zero_grad()
        out = model(pool.query(torch.randn(256, 512, device=device)))
        out.square().mean().backward()
        optimizer.step()
        error.update(out.detach())
        logger.log(torch.randn(256, 512, device=device))
        if step % 30 == 29:
            error.reset()
    logger.close()
    print("kept:", len(pool.images), len(error.outputs))


if __name__ == "__main__":
    main()
