"""Two leaks after the PyTorch blog's "Finding and Removing Reference Cycles".

The two leaks are the blog's, name by name.  Else it is shortened: no comments
and annotations, no recording of torch's memory history, one run() and one
callback that writes the page.  --device, --size and --num_iter are ours, for
machines without a GPU, and the observer is cumem's.  Default sizes are the
blog's: on a GPU memory may run out before Python's first collection.
"""

import argparse
import asyncio
import gc
import logging
from tempfile import NamedTemporaryFile

import torch

logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.INFO)
logger = logging.getLogger(__name__)


def simple_leak(tensor_size, gc_interval=None, num_iter=30000,
                device="cuda:0"):
    class Node:
        def __init__(self, T):
            self.tensor = T
            self.link = None

    for i in range(num_iter):
        A = torch.zeros(tensor_size, device=device)
        B = torch.zeros(tensor_size, device=device)
        a, b = Node(A), Node(B)
        a.link, b.link = b, a
        if gc_interval and i % int(gc_interval) == 0:
            gc.collect()


async def awaitable_leak(tensor_size, gc_interval=None, num_iter=100000,
                         device="cuda:0"):
    class AwaitableTensor:
        def __init__(self, tensor_size, device):
            self._tensor_size = tensor_size
            self._device = device
            self._tensor = None

        def wait(self):
            self._tensor = torch.zeros(self._tensor_size, device=self._device)
            return self._tensor

    class AwaitableTensorWithViewCallBack:
        def __init__(self, tensor_awaitable, view_dim):
            self._tensor_awaitable = tensor_awaitable
            self._view_dim = view_dim
            self._callback = lambda ret: ret.view(-1, self._view_dim)

        def wait(self):
            return self._callback(self._tensor_awaitable.wait())

    for i in range(num_iter):
        a_tensor = AwaitableTensor(tensor_size, device)
        AwaitableTensorWithViewCallBack(a_tensor, 4).wait()
        if gc_interval and i % int(gc_interval) == 0:
            gc.collect()


def run(workload, size, **options):
    if workload == "awaitable":
        asyncio.run(awaitable_leak(tensor_size=size, **options))
    else:
        simple_leak(tensor_size=size, **options)


def write_and_log(html):
    with NamedTemporaryFile("w", suffix=".html", delete=False) as f:
        f.write(html)
        logger.warning("Reference cycle includes a tensor, see %s", f.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gc_collect_interval", default=None)
    parser.add_argument("--workload", default="simple",
                        choices=["simple", "awaitable"])
    parser.add_argument("--warn_tensor_cycles", action="store_true")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--size", type=int, help="floats in a tensor")
    parser.add_argument("--num_iter", type=int)
    args = parser.parse_args()

    if args.warn_tensor_cycles:
        from cumem import observe_tensor_cycles

        logger.info("Enabling warning for Python reference cycles of tensors.")
        observe_tensor_cycles(write_and_log)

    size = args.size or 2**26 * (2 if args.workload == "awaitable" else 1)
    options = {"gc_interval": args.gc_collect_interval, "device": args.device}
    if args.num_iter:
        options["num_iter"] = args.num_iter
    logger.info("Running tensor_size: %s MB", size * 4 / 1024 / 1024)
    try:
        run(args.workload, size, **options)
    except Exception:
        logger.exception("Failed to allocate %s MB", size * 4 / 1024 / 1024)


if __name__ == "__main__":
    main()
