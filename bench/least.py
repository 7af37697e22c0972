# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What cumem's hook of torch's allocator costs, beside the least that such a hook can do.

    python bench/least.py [--seconds SECONDS] [--output FOLDER]

Needs a GPU.  bench/least.c is the least: it hashes the stack of each allocation and has a
table of live blocks, and knows no more.  All take turns in one process, in a new order each
time: of the loop of bench/hooks.py one iteration (what disturbs some disturbs all alike), of
torch.empty(256) 2,000 calls after as many that are not timed.  "Nothing" has torch's own
function in the slot.  cumem's other hooks return as soon as they are called, but in the row
"cumem" of an allocation: of iterations one by one, ends and collections would not cost what
they do in a row (bench/hooks.py has these).  Builds cumem with -DCUMEM_METER=pass.
"""

import ctypes
import functools
import gc
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time

import allocations_gpu
import children
import hooks
import loop
import measure

WARM = 300  # iterations
SYMBOLS = (b"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
           b"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE")
NOTHING, SLOT, TABLE, STACK, OTHERS = range(5)  # as bench/least.c has them
_OF_ALLOCATOR = sum(1 << hooks.HOOKS.index(name) for name in ("allocation", "free", "backward"))
# Who is in the slot, and which of cumem's hooks pass over.
MODES = {"nothing": (NOTHING, hooks.ALL), "nothing again": (NOTHING, hooks.ALL),
         "a call in the slot": (SLOT, hooks.ALL), "the least, without stacks": (TABLE, hooks.ALL),
         "the least": (STACK, hooks.ALL), "cumem's hook": (OTHERS, ~_OF_ALLOCATOR)}
OF_ALLOCATION = MODES | {"cumem": (OTHERS, 0)}
# The part that measures it, and where its threads run.
CASES = {"loop, cores of their own": ("loop", "own"), "loop, all on one core": ("loop", "one"),
         "allocation": ("allocation", "own")}


class Hooks:
    """Whoever hears torch's allocator."""

    def __init__(self, library):
        import cumem
        from cumem import _core

        self._least = ctypes.CDLL(library)
        self._passing = ctypes.c_uint.in_dll(ctypes.CDLL(_core.__file__), "cm_meter_passing")
        if not any(self._least.least_find(symbol) for symbol in SYMBOLS):
            raise SystemExit("torch's allocator has no slot to be heard at: no CUDA, or a new torch")
        hook = cumem.status()["allocator_hook"]
        if hook["hook"] != "torch slot":
            raise SystemExit(f"cumem does not hear torch's allocator: {hook['why']}")

    def use(self, mode):
        how, passing = OF_ALLOCATION[mode]
        self._passing.value = passing & hooks.ALL
        if not self._least.least_use(how):
            raise SystemExit("the slot's page cannot be written")


def build_least(folder):
    path = os.path.join(folder, "least.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I" + sysconfig.get_paths()["include"],
                    hooks.ROOT / "bench/least.c", hooks.ROOT / "allocator_hooks/slot.c",
                    "-o", path, "-ldl"], check=True)
    return path


def turns(modes, use, turn, seconds):
    """{mode: [turn(), ...]}: number i of all modes is of one round."""
    samples = {mode: [] for mode in modes}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for mode in random.sample(list(modes), len(modes)):
            use(mode)
            samples[mode].append(turn())
    use("cumem")
    return samples


def of_loop(spec):
    """{mode: [{"wall_ms"}, ...]} of iterations; none where a full collection fell into it."""
    if spec["cores"] == "one":
        loop.share_core()
    own = hooks.Loop("mlp", 1_000, 0, 0, False)
    for _ in range(WARM):
        own.step()
    turn = functools.partial(measure.timed, own.step, 1, measure.Counter())
    found = turns(MODES, Hooks(spec["library"]).use, turn, spec["seconds"])
    return {mode: [{key: sample[key] for key in ("wall_ms",) if key in sample}
                   for sample in samples] for mode, samples in found.items()}


def of_allocation(spec):
    """{mode: [ns, ...]} of torch.empty(256) and its free, 30 frames deep."""
    loop.start_cumem()
    import torch

    keep = torch.empty(256, device=allocations_gpu.DEVICE)
    gc.collect()  # cumem learns of the device
    gc.disable()
    turn = functools.partial(allocations_gpu.deep, allocations_gpu.DEEP,
                             functools.partial(allocations_gpu.pairs, torch.empty))
    found = turns(OF_ALLOCATION, Hooks(spec["library"]).use, turn, spec["seconds"])
    del keep
    return found


def lines_of_loop(samples):
    rows = []
    for mode in samples:
        wall = measure.ratio([samples], mode, "nothing", resamples=300)
        middle = measure.median([one["wall_ms"] for one in samples[mode] if one])
        rows.append([mode, f"{middle:.3f}", f"x{wall['ratio']:.4f}",
                     f"[{wall['low']:.4f}, {wall['high']:.4f}]", wall["pairs"]])
    return measure.table(["", "ms", "ratio", "95 % interval", "pairs"], rows)


def lines_of_allocation(samples):
    rows = []
    for mode, values in samples.items():
        added = [a - b for a, b in zip(values, samples["nothing"])]
        low, high = measure.interval(added)
        rows.append([mode, f"{measure.median(values):,.0f}", f"{measure.median(added):+,.0f}",
                     f"[{low:+,.0f}, {high:+,.0f}]", len(added)])
    return measure.table(["", "ns", "added", "95 % interval", "rounds"], rows)


def samples_of(part, spec, package):
    """What a fresh process finds."""
    found = children.call("least.py", part, spec, 2 * spec["seconds"] + 120, PYTHONPATH=package,
                          **loop.cumem_environment())
    if "failed" in found:
        raise SystemExit(f"{part}: {found['failed']}: {found['said']}")
    return found


def report(options):
    output = measure.Output("least", __doc__.splitlines()[0], options)
    with tempfile.TemporaryDirectory() as scratch:
        package = hooks.build(scratch, "pass")
        spec = {"library": build_least(scratch), "seconds": options.seconds / len(CASES)}
        for case, (part, cores) in CASES.items():
            samples = samples_of(part, {**spec, "cores": cores}, package)
            output.case(case=case, samples=samples)
            output.text("", case, LINES[part](samples))
    output.write()


PARTS = {"loop": of_loop, "allocation": of_allocation}
LINES = {"loop": lines_of_loop, "allocation": lines_of_allocation}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in PARTS:
        children.answer(PARTS)
    else:
        report(measure.arguments(__doc__.splitlines()[0], 300).parse_args())
