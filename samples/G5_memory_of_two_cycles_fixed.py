"""Two cycles hold the same memory: it goes when both are cut."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Actor:
    def __init__(self, states):
        self.states = states
        self.critic = None


class Critic:
    def __init__(self, actor):
        self.actor = weakref.ref(actor)


class Replay:
    def __init__(self, states):
        self.last = states[-1]
        self.me = weakref.ref(self)


def main():
    states = torch.zeros(1024, 1024, device=device)
    actor, replay = Actor(states), Replay(states)
    actor.critic = Critic(actor)
    print(len(actor.states), len(replay.last))
    del states, actor, replay
    gc.collect()


if __name__ == "__main__":
    main()
