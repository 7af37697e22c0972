"""Jobs of an engine, each a partial of a method of the engine."""

from functools import partial
import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Job:
    def __init__(self, work):
        self.work = work


class Engine:
    def __init__(self):
        self.rows = torch.ones(1024, 1024, device=device)
        engine = weakref.ref(self)
        self.jobs = [Job(partial(lambda row: engine().run(row), row))
                     for row in range(2)]

    def run(self, row):
        return self.rows[row].sum().item()


def main():
    engine = Engine()
    print("sums:", [job.work() for job in engine.jobs])
    del engine
    gc.collect()


if __name__ == "__main__":
    main()
