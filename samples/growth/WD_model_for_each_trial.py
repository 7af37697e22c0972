"""A sweep with a model and an optimizer for each trial; a list for the best one keeps them all."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def trial(rate):
    model = nn.Linear(512, 512, device=device)  # LEAK
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(3):
        loss = model(torch.randn(8, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.item(), model


def main():
    trials = []
    for number in range(30):
        score, model = trial(0.1 / (1 + number))
        trials.append((score, model))  # HELD
    print("best:", f"{min(score for score, _ in trials):.3f}" != "nan")


if __name__ == "__main__":
    main()
