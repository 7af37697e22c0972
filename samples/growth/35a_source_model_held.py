"""The pretrained model stays beside the one that took its weights over."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_model():
    return nn.Sequential(nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 1024)).to(device)  # LEAK


def main():
    pretrained = make_model()  # HELD pretrained
    model = make_model()
    model.load_state_dict(pretrained.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(30):
        loss = model(torch.randn(32, 1024, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("steps: 30")


if __name__ == "__main__":
    main()
