"""The oldest of nine is taken out each time, but each entry is made of the one before: its graph has no end."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Recent:
    def __init__(self, size):
        self.window = [torch.zeros(size, size, device=device)]

    def add(self, moment):
        self.window.append(0.1 * moment + 0.9 * self.window[-1])  # HELD
        if len(self.window) > 8:
            self.window.pop(0)


def main():
    torch.manual_seed(0)
    model = nn.Linear(256, 256).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    recent = Recent(256)
    for step in range(60):
        x = torch.randn(512, 256, device=device)  # ALSO batch
        out = model(x)  # LEAK
        recent.add(out.t() @ out)
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print("step:", step, "finite:", bool(loss.isfinite()))


if __name__ == "__main__":
    main()
