"""A replay with priorities in a tree of NumPy's, and the outputs of an epoch as NumPy's arrays."""

import numpy as np
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 30


class SumTree:
    def __init__(self, capacity):
        self.capacity, self.at = capacity, 0
        self.tree = np.zeros(2 * capacity - 1)
        self.data = np.zeros(capacity, dtype=object)

    def add(self, priority, transition):
        self.data[self.at] = transition
        self.update(self.at + self.capacity - 1, priority)
        self.at = (self.at + 1) % self.capacity

    def update(self, node, priority):
        change = priority - self.tree[node]
        self.tree[node] = priority
        while node != 0:
            node = (node - 1) // 2
            self.tree[node] += change

    def get(self, value):
        node = 0
        while 2 * node + 1 < len(self.tree):
            left = 2 * node + 1
            if value <= self.tree[left]:
                node = left
            else:
                value, node = value - self.tree[left], left + 1
        return self.data[node - self.capacity + 1]


def main():
    torch.manual_seed(0)
    model, replay, curve = nn.Linear(512, 512).to(device), SumTree(40), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(6):
        outputs = []
        for step in range(STEPS):
            optimizer.zero_grad()
            state = torch.randn(256, 512, device=device)
            replay.add(1.0, (state, step % 4))
            sampled, action = replay.get(0.5 * replay.tree[0])
            output = model(sampled)
            output.square().mean().backward()
            optimizer.step()
            outputs.append(output.detach().cpu().numpy())
        curve.append(float(np.concatenate(outputs).std()))
    print("epochs:", len(curve), "rows:", len(replay.data))


if __name__ == "__main__":
    main()
