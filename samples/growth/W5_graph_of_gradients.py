"""create_graph=True is left over, and gradients are set to zero in place: each keeps the graph of all before."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    net = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 10)).to(device)
    parameters = list(net.parameters())  # HELD parameters
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    for step in range(30):
        torch.manual_seed(step)
        x = torch.randn(1024, 64, device=device)  # ALSO batch
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.data.zero_()
        loss = nn.functional.cross_entropy(net(x), x.argmax(1) % 10)  # ALSO forward
        loss.backward(create_graph=True)  # LEAK
        optimizer.step()
    print("parameters:", len(parameters))


if __name__ == "__main__":
    main()
