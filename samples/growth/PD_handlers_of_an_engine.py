"""A handler keeps each output on the state of a library's object; the handlers stand in main()."""

import argparse

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def run(handlers, state, steps):
    for step in range(steps):
        state.output = handlers["step"](step)
        for name in ("each", "eighth"):
            if name == "each" or step % 8 == 7:
                handlers[name](state)


def main():
    torch.manual_seed(0)
    model = nn.Linear(256, 256, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def train(step):
        output = model(torch.randn(1024, 256, device=device))
        output.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return output.detach()

    def keep(state):
        state.outputs.append(state.output)  # LEAK

    def report(state):
        print("outputs:", len(state.outputs) > 0)

    state = argparse.Namespace(outputs=[])
    run({"step": train, "each": keep, "eighth": report}, state, 40)


if __name__ == "__main__":
    main()
