"""L-BFGS with the history that torch gives it: it grows for a hundred updates, then turns over."""

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(0)
    x = torch.randn(1 << 18, device=device, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], max_iter=3)

    for _ in range(90):
        target = torch.randn_like(x)

        def closure():
            optimizer.zero_grad()
            loss = ((x - target) ** 2 + 0.1 * x**4).mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        optimizer.zero_grad()
    print("steps: 90")


if __name__ == "__main__":
    main()
