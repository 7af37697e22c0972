"""A recurrent agent keeps its hidden state with its graph from step to step: all observations hang from it."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Agent(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.cell = nn.GRUCell(width, width)
        self.value = nn.Linear(width, 1)
        self.hidden = None

    def reset(self, count):
        self.hidden = torch.zeros(count, 256, device=device)

    def forward(self, observation):
        self.hidden = self.cell(observation, self.hidden)  # LEAK
        return self.value(self.hidden)


class Trainer:
    def __init__(self, agent):
        self.agent = agent
        self.optimizer = torch.optim.Adam(agent.value.parameters(), lr=1e-3)

    def step(self, observation, target):
        loss = (self.agent(observation) - target).square().mean()
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True, inputs=list(self.agent.value.parameters()))
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    trainer, total = Trainer(Agent().to(device)), 0.0
    trainer.agent.reset(256)
    for _ in range(40):
        observation = torch.randn(256, 256, device=device)  # ALSO
        total += trainer.step(observation, torch.randn(256, 1, device=device))
    print("loss:", total > 0)


if __name__ == "__main__":
    main()
