"""A cycle that holds only a loss; the activations stand behind its grad_fn."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Step:
    def __init__(self, loss):
        self.loss = loss
        self.undo = self.forget

    def forget(self):
        self.loss = None


def main():
    layer = torch.nn.Linear(256, 1024, device=device)
    step = Step(layer(torch.ones(1024, 256, device=device)).relu().exp().sum())
    print("loss has a graph:", step.loss.requires_grad)
    del step
    gc.collect()


if __name__ == "__main__":
    main()
