"""A policy that is held near the reference model it was loaded from, and to a checkpoint's weights."""

import io

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_model():
    return nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 512)).to(device)


def saved_checkpoint():
    file = io.BytesIO()
    torch.save(make_model().state_dict(), file)
    file.seek(0)
    return file


def main():
    torch.manual_seed(0)
    reference, policy = make_model(), make_model()
    anchor = torch.load(saved_checkpoint(), map_location=device)
    reference.load_state_dict(anchor)
    policy.load_state_dict(reference.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters())
    for step in range(40):
        x = torch.randn(32, 512, device=device)
        with torch.no_grad():
            wanted = reference(x)
        near = sum((now - anchor[name]).square().sum() for name, now in policy.named_parameters())
        loss = (policy(x) - wanted).square().mean() + 1e-4 * near
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("steps: 40")


if __name__ == "__main__":
    main()
