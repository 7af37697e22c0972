"""What a callback keeps of each batch is set anew by a method that its on_epoch_begin() calls."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class EpochScoring:
    def initialize(self):
        self.y_preds_ = []
        self.y_trues_ = []

    def on_epoch_begin(self, net):
        self.initialize()

    def on_batch_end(self, net, y, y_pred):
        self.y_preds_.append(y_pred)
        self.y_trues_.append(y)

    def on_epoch_end(self, net):
        right = torch.cat(self.y_preds_).argmax(1) == torch.cat(self.y_trues_)
        net.history.append(right.float().mean().item())


class Net:
    def __init__(self, module, callbacks):
        self.module = module
        self.callbacks = callbacks
        self.history = []
        self.optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def notify(self, name, **kwargs):
        for callback in self.callbacks:
            getattr(callback, name, lambda net, **kw: None)(self, **kwargs)

    def fit(self, epochs, batches):
        for epoch in range(epochs):
            self.notify("on_epoch_begin")
            for _ in range(batches):
                x = torch.randn(512, 32, device=device)
                y = x.argmax(1)
                y_pred = self.module(x)
                loss = nn.functional.cross_entropy(y_pred, y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.notify("on_batch_end", y=y, y_pred=y_pred.detach())
            self.notify("on_epoch_end")


def main():
    net = Net(nn.Linear(32, 32).to(device), [EpochScoring()])
    net.fit(4, 40)
    print("epochs:", len(net.history))


if __name__ == "__main__":
    main()
