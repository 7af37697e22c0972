"""The embeddings of every batch are kept for a plot at the end."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 1024)
        self.down = nn.Linear(1024, 10)

    def forward(self, x):
        embedding = torch.tanh(self.up(x))
        return self.down(embedding), embedding


def make_batch(step):
    torch.manual_seed(step)
    x = torch.randn(256, 16, device=device)
    return x, x.argmax(dim=1) % 10


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    embeddings = []
    for step in range(40):
        x, y = make_batch(step)
        out, embedding = model(x)
        F.cross_entropy(out, y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        embeddings[7:] = []
        embeddings.append(embedding.detach())
    print("embeddings:", len(embeddings))


if __name__ == "__main__":
    main()
