"""A trainer whose connector and whose callbacks all know it."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Callback:
    def setup(self, trainer):
        self.trainer = weakref.ref(trainer)

    def on_batch_end(self, loss):
        self.trainer().metrics["loss"] = loss


class Connector:
    def __init__(self, owner):
        self.owner = weakref.ref(owner)

    def attach(self, callbacks):
        for callback in callbacks:
            callback.setup(self.owner())
            self.owner().callbacks.append(callback)


class Trainer:
    def __init__(self, callbacks):
        self.callbacks = []
        self.metrics = {}
        self.connector = Connector(self)
        self.connector.attach(callbacks)

    def fit(self):
        loss = torch.zeros(1024, 1024, device=device)
        for callback in self.callbacks:
            callback.on_batch_end(loss)


def main():
    trainer = Trainer([Callback(), Callback()])
    trainer.fit()
    print("metrics:", *trainer.metrics)
    del trainer
    gc.collect()


if __name__ == "__main__":
    main()
