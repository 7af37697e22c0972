"""A cell's state stays in the module with its graph; the loss, which has that too, is set anew in each step."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(64, 128)
        self.out = nn.Linear(128, 64)
        self.state = None

    def forward(self, x):
        self.state = self.cell(x, None if self.state is None else self.state.detach())
        return self.out(self.state)


def train_step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    return loss


def main():
    torch.manual_seed(0)
    model = Stateful().to(device)
    optimizer = torch.optim.SGD([model.out.bias], lr=0.1)
    for step in range(40):
        loss = train_step(model, optimizer, torch.randn(256, 64, device=device))
        if step % 10 == 9:
            print("step:", step, "finite:", bool(loss.isfinite()))


if __name__ == "__main__":
    main()
