"""A backward hook gathers the gradients of a layer's output on the layer."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Probe(nn.Tanh):
    def __init__(self):
        super().__init__()
        self.seen = []
        self.register_full_backward_hook(type(self).record)

    def record(self, grad_input, grad_output):
        self.seen.append(grad_output[0].norm().item())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 1024)
        self.act = Probe()
        self.down = nn.Linear(1024, 10)

    def forward(self, x):
        hidden = self.act(self.up(x))
        return self.down(hidden)


def make_batch(step):
    torch.manual_seed(step)
    x = torch.randn(256, 16, device=device)
    return x, x.argmax(dim=1) % 10


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        x, y = make_batch(step)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("gradients seen:", len(model.act.seen))


if __name__ == "__main__":
    main()
