# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What cumem has learnt of the installed torch's autograd, and whether it holds.

    python bench/autograd.py [--chain N]

Prints the places of torch's structures, learns them again many times (each time from other
tensors: the answers must not differ), walks some graphs whose contents are known, and times a
long chain.  The exit status is 1 when anything is not as it must be.
"""

import argparse
import collections
import gc
import sys
import time

import torch

import cumem
import measure
from cumem import _autograd, _core

MIB = 1 << 20
failed = []


def check(name, right, *shown):
    print(f"{'ok  ' if right else 'FAIL'} {name}", *shown)
    if not right:
        failed.append(name)


def behind(tensor):
    return _core.autograd_behind(tensor) or collections.defaultdict(int)


def learn(times):
    seen = collections.Counter()
    for _ in range(times):
        try:
            _autograd._probe(torch)
            seen[tuple(_core.autograd_probe("layout").items())] += 1
        except RuntimeError as error:
            seen[str(error)] += 1
    for layout, count in seen.most_common():
        print(count, "x", layout if isinstance(layout, str) else dict(layout))
    check(f"learnt {times} times alike", len(seen) == 1)
    _autograd.probe()


class Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x * 2)
        return x + 1

    @staticmethod
    def backward(ctx, grad):
        return grad


def graphs():
    x = torch.ones(512, 512, requires_grad=True)
    y = x.exp().exp()
    found = behind(y)
    check("saved outputs", found["nodes"] == 3 and found["bytes"] == MIB, found)
    check("goes with the tensor", found["retained"] == MIB)
    y.sum().backward()
    check("gone after backward", behind(y)["bytes"] == 0, behind(y))
    kept = Keep.apply(x)
    check("Function", behind(kept)["retained"] == MIB, behind(kept))
    pair = x[torch.tensor([0, 1]), torch.tensor([1, 0])]
    check("vector of saved tensors", behind(pair)["retained"] == 32, behind(pair))
    calls = []

    def unpack(tensor):
        calls.append("unpack")
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), unpack):
        packed = x.exp()
    check("packed, not unpacked", behind(packed)["retained"] == MIB and not calls, behind(packed))


def leak_hook():
    y = torch.ones(512, 512, requires_grad=True) * 2
    y.register_hook(lambda grad: grad * y)


def leak_packed():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        torch.ones(512, 512, requires_grad=True).exp()


def leak_nothing():
    y = torch.ones(512, 512, requires_grad=True) * 2
    y.register_hook(lambda grad: grad * 2)


def cycles():
    for leak, wanted in ((leak_nothing, 0), (leak_hook, 1), (leak_packed, 2)):
        leak()
        gc.collect()
        report = cumem.find_cycles().report
        found = [cycle for cycle in report["cycles"] if cycle["class"] == "uncollectable"]
        check(leak.__name__, len(found) == wanted,
              [(cycle["rule"], cycle["bytes_each"]) for cycle in found])


def chain(length):
    total = torch.zeros((), requires_grad=True)
    for _ in range(length):
        total = total + 1.0
    start = time.perf_counter()
    found = behind(total)
    took = time.perf_counter() - start
    check("chain", found["length"] == length + 1 and found["nodes"] == length + 1,
          f"{took / (length + 1) * 1e6:.2f} us a step")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chain", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=500)
    options = parser.parse_args()
    print(*measure.head(measure.machine()), "", sep="\n", flush=True)
    with cumem.observe_tensor_cycles(lambda page: None, devices="cpu"):
        print("autograd:", cumem.status()["autograd"])
        learn(options.times)
        graphs()
        cycles()
        chain(options.chain)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
