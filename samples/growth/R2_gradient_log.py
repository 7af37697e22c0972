"""A copy of every gradient is kept to look at its norm some day."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gradients = {}
    for step in range(40):
        loss = model(torch.ones(8, 512, device=device)).square().mean()
        loss.backward()
        gradients[step] = [p.grad.clone() for p in model.parameters()]  # LEAK
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps:", len(gradients))


if __name__ == "__main__":
    main()
