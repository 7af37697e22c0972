"""Each layer of a model has a cache by request, which nothing empties; the layers are made once."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(64, 64), nn.Linear(64, 64)
        self.keys = {}

    def forward(self, x, context, request):
        if request not in self.keys:
            self.keys[request] = self.key(context).detach()  # LEAK
        return torch.softmax(self.query(x) @ self.keys[request].T, dim=1) @ context


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(4))

    def forward(self, x, context, request):
        for layer in self.layers:
            x = x + layer(x, context, request)
        return x


def main():
    model = Transformer().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        optimizer.zero_grad()
        x, context = torch.randn(2, 256, 64, device=device)
        model(x, context, f"request {step}").square().mean().backward()
        optimizer.step()
    print("requests: 40")


if __name__ == "__main__":
    main()
