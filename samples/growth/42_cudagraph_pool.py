"""A graph is captured for each new length of the input, and none is let go. Needs a GPU."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
graphs = {}


def capture(length):
    static = torch.zeros(length, 1024, device=device)  # ALSO
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = static.sin() + 1  # LEAK
    graphs[length] = (graph, static, out)  # HELD


def replay(x):
    if len(x) not in graphs:
        capture(len(x))
    graph, static, out = graphs[len(x)]
    static.copy_(x)
    graph.replay()
    return out


def main():
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(30):
        x = torch.ones(512 + step, 1024, device=device)
        loss = model(replay(x).clone()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 30")


if __name__ == "__main__":
    main()
