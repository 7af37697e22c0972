"""DQN: a bounded replay buffer that fills, and a target network that is synchronised."""

import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_model():
    return nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)


def main():
    random.seed(0)
    torch.manual_seed(0)
    online, target = make_model(), make_model()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters())
    replay = deque(maxlen=12)
    state = torch.randn(256, 1024, device=device)
    for step in range(60):
        with torch.no_grad():
            action = online(state).argmax(dim=1)
        following = torch.roll(state, 1, dims=1) + 0.1 * torch.randn(256, 1024, device=device)
        replay.append((state, action, following))
        state = following

        old, chosen, new = random.choice(replay)
        with torch.no_grad():
            wanted = new.mean(dim=1) + 0.9 * target(new).amax(dim=1)
        value = online(old).gather(1, chosen[:, None])[:, 0]
        F.smooth_l1_loss(value, wanted).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 9:
            target.load_state_dict(online.state_dict())
    print("steps: 60, transitions:", len(replay))


if __name__ == "__main__":
    main()
