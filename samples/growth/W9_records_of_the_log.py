"""Records of the log wait in a handler for an error that never comes; their arguments are losses with graphs."""

import logging
import logging.handlers

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
log = logging.getLogger("train")  # HELD
log.setLevel(logging.DEBUG)
log.propagate = False
log.addHandler(logging.handlers.MemoryHandler(100000, target=logging.NullHandler()))


def main():
    net = nn.Linear(64, 1024, device=device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(40):
        torch.manual_seed(step)
        out = net(torch.randn(256, 64, device=device))  # LEAK
        loss = out.square().mean()
        log.debug("step %d: loss %s", step, loss)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
    print("weight:", round(net.weight.abs().mean().item()))


if __name__ == "__main__":
    main()
