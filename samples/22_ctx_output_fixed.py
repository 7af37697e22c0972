"""The output is saved as torch wants it."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x * 2
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * (ctx.saved_tensors[0] != 0) * 2


def main():
    x = torch.ones(1024, 1024, device=device, requires_grad=True)
    Double.apply(x).sum().backward()
    print("gradient:", tuple(x.grad.shape))
    gc.collect()


if __name__ == "__main__":
    main()
