"""zero_grad drops the gradients, but a list has taken them over."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for step in range(40):
        loss = model(torch.ones(8, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        kept.append(model.weight.grad.norm().item())
        optimizer.zero_grad(set_to_none=True)
    print("steps:", len(kept))


if __name__ == "__main__":
    main()
