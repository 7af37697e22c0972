"""The hidden states of all steps, each detached, in a tuple that gets longer."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    cell = nn.GRUCell(64, 512, device=device)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.01)
    all_hidden_states = ()
    hidden = torch.zeros(512, 512, device=device)
    for step in range(40):
        torch.manual_seed(step)
        optimizer.zero_grad()
        hidden = cell(torch.randn(512, 64, device=device), hidden)  # LEAK
        all_hidden_states = all_hidden_states + (hidden,)  # HELD
        hidden.square().mean().backward()
        optimizer.step()
        hidden = hidden.detach()
    print("states:", len(all_hidden_states))


if __name__ == "__main__":
    main()
