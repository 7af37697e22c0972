"""Of each row the class alone is kept, as a number."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    model = nn.Linear(128, 4096).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    classes = []
    for step in range(40):
        y = model(torch.randn(64, 128, device=device))
        classes.extend(y.argmax(1).tolist())
        y.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print(len(classes))


if __name__ == "__main__":
    main()
