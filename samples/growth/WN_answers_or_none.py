"""A dict of each step's answer, or None: its newest keys may have no value."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Linear(64, 64).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    answers = {}
    for step in range(40):
        y = model(torch.randn(4096, 64, device=device))  # LEAK
        y.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        answers[step] = y.detach() if step % 8 < 6 else None  # HELD
    print("answers:", len(answers))


if __name__ == "__main__":
    main()
