"""States made of each other in a window whose oldest goes; every 25 steps all are cut off their graphs."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    cell = nn.GRUCell(64, 128).to(device)
    head = nn.Linear(128, 64).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    states = [torch.zeros(512, 128, device=device)]
    for step in range(150):
        x = torch.randn(512, 64, device=device)
        states.append(cell(x, states[-1]))
        if len(states) > 4:
            states.pop(0)
        loss = (head(states[-1].detach()) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            states = [state.detach() for state in states]
        if step % 50 == 49:
            print("step:", step, "finite:", bool(loss.isfinite()))


if __name__ == "__main__":
    main()
