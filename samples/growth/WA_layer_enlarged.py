"""The embedding is made anew with more rows in each step, and so are its gradient and the optimizer."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(256, 16)
        self.emb = nn.Embedding(1024, 256)

    def enlarge(self, rows):
        larger = nn.Embedding(self.emb.num_embeddings + rows, 256, device=device)  # LEAK
        with torch.no_grad():
            larger.weight[: self.emb.num_embeddings] = self.emb.weight
        self.emb = larger  # HELD

    def forward(self, ids):
        return self.out(self.emb(ids).mean(1))  # ALSO forward


def main():
    model = Model().to(device)  # HELD model
    for step in range(40):
        torch.manual_seed(step)
        model.enlarge(1024)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        ids = torch.randint(0, model.emb.num_embeddings, (32, 16), device=device)
        model(ids).square().mean().backward()  # ALSO
        optimizer.step()
        optimizer.zero_grad()
    print("rows:", model.emb.num_embeddings)


if __name__ == "__main__":
    main()
