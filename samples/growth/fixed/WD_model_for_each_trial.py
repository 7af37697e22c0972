"""A sweep with a model and an optimizer for each trial; only the best model is kept."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def trial(rate):
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(3):
        loss = model(torch.randn(8, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.item(), model


def main():
    best, best_model, scores = float("inf"), None, []
    for number in range(30):
        score, model = trial(0.1 / (1 + number))
        scores.append(score)
        if score < best:
            best, best_model = score, model
    print("best:", f"{min(scores):.3f}" != "nan", best_model is not None)


if __name__ == "__main__":
    main()
