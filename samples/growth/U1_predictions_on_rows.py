"""Each row of the data set keeps the prediction that was made for it."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Row:
    def __init__(self, x, y):
        self.x = x
        self.y = y


def train(model, optimizer, row):
    prediction = model(row.x)  # LEAK
    F.mse_loss(prediction, row.y).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    row.prediction = prediction  # HELD


def main():
    torch.manual_seed(0)
    data = [Row(torch.randn(256, 64, device=device), torch.zeros(256, 1024, device=device))
            for _ in range(60)]
    model = nn.Linear(64, 1024, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    for row in data:
        train(model, optimizer, row)
    print("rows: 60")


if __name__ == "__main__":
    main()
