"""A scheduler that puts itself into the queue that it has."""

import gc
import queue
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Scheduler:
    def __init__(self):
        self.state = torch.ones(1024, 1024, device=device)
        self.due = queue.PriorityQueue()

    def plan(self, time):
        self.due.put((time, weakref.ref(self)))

    def run(self):
        time, scheduler = self.due.queue[0]
        return time * scheduler().state.sum().item()


def main():
    scheduler = Scheduler()
    scheduler.plan(2)
    print("sum:", scheduler.run())
    del scheduler
    gc.collect()


if __name__ == "__main__":
    main()
