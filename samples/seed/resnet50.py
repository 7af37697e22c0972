"""The ResNet-50 of the PyTorch blog's "Understanding GPU Memory 1".

The same structure and names as the blog's programs, shortened: `snapshot`
trains with or without clearing the gradients, `profiler` (its appendix B)
clears them under torch.profiler.  The recorder's and the profiler's own files
are left out.
"""

import argparse

import torch
from torch.autograd.profiler import record_function
from torchvision import models


def make(device):
    model = models.resnet50().to(device=device)
    inputs = torch.randn(1, 3, 224, 224, device=device)
    labels = torch.rand_like(model(inputs))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    return model, inputs, labels, optimizer, torch.nn.CrossEntropyLoss()


def run_resnet50(num_iters=5, device="cuda:0", force_memory_leak=True):
    model, inputs, labels, optimizer, loss_fn = make(device)
    for _ in range(num_iters):
        pred = model(inputs)
        loss_fn(pred, labels).backward()
        optimizer.step()
        if not force_memory_leak:
            optimizer.zero_grad(set_to_none=True)


def run_resnet50_profiled(num_iters=5, device="cuda:0"):
    model, inputs, labels, optimizer, loss_fn = make(device)
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=0, warmup=0, active=6, repeat=1),
        record_shapes=True, profile_memory=True, with_stack=True,
    ) as prof:
        for _ in range(num_iters):
            prof.step()
            with record_function("## forward ##"):
                pred = model(inputs)
            with record_function("## backward ##"):
                loss_fn(pred, labels).backward()
            with record_function("## optimizer ##"):
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", default="snapshot",
                        choices=["snapshot", "profiler"])
    parser.add_argument("--clear", action="store_true",
                        help="call zero_grad(), as the blog's mended program")
    parser.add_argument("--num_iters", type=int, default=5)
    parser.add_argument("--device", default="cuda:0")
    given = parser.parse_args()
    if given.workload == "profiler":
        run_resnet50_profiled(given.num_iters, given.device)
    else:
        run_resnet50(given.num_iters, given.device, not given.clear)
