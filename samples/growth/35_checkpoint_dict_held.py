"""The loaded checkpoint stays beside the model that took its weights over."""

import io

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_model():
    return nn.Sequential(nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 1024)).to(device)


def saved_checkpoint():
    file = io.BytesIO()
    torch.save({"model": make_model().state_dict(), "epoch": 3}, file)
    file.seek(0)
    return file


def main():
    model = make_model()
    checkpoint = torch.load(saved_checkpoint(), map_location=device)  # LEAK
    model.load_state_dict(checkpoint["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(30):
        loss = model(torch.randn(32, 1024, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 30 from epoch", checkpoint["epoch"])


if __name__ == "__main__":
    main()
