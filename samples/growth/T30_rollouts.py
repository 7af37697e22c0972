"""A policy trained on rollouts: a buffer fills for 16 steps, is learnt from, and is made anew."""

import torch
from torch import nn
from torch.distributions import Categorical

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_net(out):
    return nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, out)).to(device)


@torch.no_grad()
def roll_out(policy, critic):
    buffer = []
    for _ in range(16):
        state = torch.randn(64, 512, device=device)
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        reward = torch.randn(64, device=device)
        buffer.append((state, action, choice.log_prob(action), reward - critic(state).squeeze(-1)))
    return [torch.cat(column) for column in zip(*buffer)]


def main():
    torch.manual_seed(0)
    policy, critic = make_net(8), make_net(1)
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=3e-4)
    for _ in range(12):
        states, actions, before, advantages = roll_out(policy, critic)
        for index in torch.randperm(len(states), device=device).split(256):
            now = Categorical(logits=policy(states[index])).log_prob(actions[index])
            ratio = (now - before[index]).exp()
            loss = -(ratio.clamp(0.8, 1.2) * advantages[index]).mean()
            loss = loss + critic(states[index]).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    print("updates: 12")


if __name__ == "__main__":
    main()
