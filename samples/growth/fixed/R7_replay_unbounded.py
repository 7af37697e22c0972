"""A replay buffer without a bound."""

import collections
import random

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Replay:
    def __init__(self):
        self.transitions = collections.deque(maxlen=8)

    def push(self, state, action, reward):
        self.transitions.append((state, action, reward))

    def sample(self):
        return random.choice(self.transitions)


def observe(step):
    torch.manual_seed(step)
    return torch.randn(256, 1024, device=device)


def main():
    random.seed(0)
    model = nn.Linear(1024, 4, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    replay = Replay()
    for step in range(40):
        state = observe(step)
        with torch.no_grad():
            action = model(state).argmax(dim=1)
        replay.push(state, action, action.float())
        state, action, reward = replay.sample()
        value = model(state).gather(1, action[:, None])[:, 0]
        F.mse_loss(value, reward).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("transitions pushed: 40")


if __name__ == "__main__":
    main()
