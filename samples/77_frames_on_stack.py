"""All frames of the stack, kept in a list of one of them."""

import gc
import sys

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def caller_frames():
    frame, frames = sys._getframe(1), []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def forward():
    x = torch.zeros(1024, 1024, device=device)
    stack = caller_frames()
    return stack[0].f_code.co_name, tuple(x.shape)


def main():
    print(*forward())
    gc.collect()


if __name__ == "__main__":
    main()
