"""The last ten embeddings are kept for a moving average: a window that fills."""

from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 64)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    window = deque(maxlen=10)
    for step in range(50):
        x = torch.randn(256, 64, device=device)
        optimizer.zero_grad()
        embedding = model[1](model[0](x))
        loss = F.mse_loss(model[2](embedding), x)
        loss.backward()
        optimizer.step()
        window.append(embedding.detach())
    print("window:", len(window))


if __name__ == "__main__":
    main()
