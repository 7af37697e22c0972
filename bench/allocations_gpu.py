# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Cases d, e and f of allocations.py: cost, and others that listen, on a GPU."""

import functools
import gc
import random
import time

import children

DEVICE = "cuda"
DEEP = 30


def observe():
    """The handle; raises where the hook did not start."""
    import cumem
    import torch

    handle = cumem.observe_tensor_cycles(lambda page: None)
    torch.cuda.init()
    found = hook()
    if found["hook"] != "torch slot":
        raise RuntimeError(f"the hook is {found['hook']!r}: {found['why']}")
    return handle


def hook():
    """What cumem says of its hook."""
    import cumem

    return cumem.status()["allocator_hook"]


# -- d: cost ----------------------------------------------------------------

RECORDERS = {"recorder alloc, python": ("alloc", "python"),
             "recorder all, python": ("all", "python"),
             "recorder all, all": ("all", "all"),
             "recorder state, python": ("state", "python")}
EACH = 2_000


class Mode:
    """One tool on and off within a process."""

    def __init__(self, torch, name):
        self._torch, self._name = torch, name

    def __enter__(self):
        if self._name == "cumem":
            self._handle = observe()
        elif self._name in RECORDERS:
            context, stacks = RECORDERS[self._name]
            self._torch.cuda.memory._record_memory_history(
                "all", context=context, stacks=stacks, max_entries=100_000)

    def __exit__(self, *_):
        if self._name == "cumem":
            self._handle.remove()
        elif self._name in RECORDERS:
            self._torch.cuda.memory._record_memory_history(None)


def deep(frames, function):
    return function() if frames <= 0 else deep(frames - 1, function)


def pairs(empty):
    """ns for one call of torch's empty() and its free."""
    for _ in range(EACH):  # a tool's first events find pages that nobody has used
        empty(256, device=DEVICE)
    start = time.perf_counter_ns()
    for _ in range(EACH):
        empty(256, device=DEVICE)
    return (time.perf_counter_ns() - start) / EACH


def cost(spec):
    """{depth: {mode: [ns, ...]}}: sample i of all modes is of one round."""
    import torch

    checks = children.Checks()
    gc.disable()
    empty = torch.empty
    turn = functools.partial(pairs, empty)
    depths = {"shallow": 0, f"{DEEP} frames deep": DEEP}

    def round_of(names):
        found = {}
        for name in names:
            with checks.part(name), Mode(torch, name):
                found[name] = {depth: deep(frames, turn)
                               for depth, frames in depths.items()}
        return found

    hold, dice = empty(256, device=DEVICE), random.Random(1)
    names = ["nothing", "nothing again", "cumem", *RECORDERS]
    names = list(round_of(names))  # warm, and without those that failed
    samples = {depth: {name: [] for name in names} for depth in depths}
    end = time.monotonic() + spec["seconds"]
    for number in range(spec["rounds"]):
        if (number >= 8 and time.monotonic() > end) or len(checks.rows) > len(RECORDERS):
            break
        found = round_of(dice.sample(names, len(names)))
        for depth, by_mode in samples.items():
            for name in names if len(found) == len(names) else ():
                by_mode[name].append(found[name][depth])
    del hold
    return {"samples": samples, "rows": checks.rows, "hook": hook()}


# -- e and f: others that listen --------------------------------------------

def _model(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)]).to(DEVICE)
    batch = torch.randn(64, 512, device=DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def profile(spec):
    import torch
    from torch.profiler import ProfilerActivity

    handle = observe() if spec["tool"] == "cumem" else None
    step = _model(torch)
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    with torch.profiler.profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
            profile_memory=True) as profiler:
        for _ in range(20):
            step()
        torch.cuda.synchronize()
    events = profiler.profiler.kineto_results.events()
    cuda = [event for event in events
            if event.device_type() == torch.autograd.DeviceType.CUDA
            and event.name() != "[memory]"]
    answer = {"cuda": len(cuda), "all": len(events),
              "memory": sum(event.name() == "[memory]" for event in events),
              "rows": []}
    if handle is not None:
        import cumem

        answer["status"] = {key: value for key, value in cumem.status().items()
                            if "hook" in key or "driver" in key}
        handle.remove()
    return answer


def recorder(spec):
    """What torch's own recorder has after a training loop, with or without cumem."""
    import collections

    import torch

    torch.cuda.init()
    torch.cuda.memory._record_memory_history("all", context="all", stacks="python",
                                             max_entries=100_000)
    handle = observe() if spec["tool"] == "cumem" else None
    step = _model(torch)
    for _ in range(10):
        step()
    gc.collect()
    torch.cuda.synchronize()
    snapshot = torch.cuda.memory._snapshot()
    if handle is not None:
        handle.remove()
    entries = snapshot["device_traces"][0]
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]
              if block["state"] == "active_allocated"]
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", lambda: None)
    return {"entries": len(entries),
            "actions": dict(sorted(collections.Counter(
                entry["action"] for entry in entries).items())),
            "blocks": len(blocks), "still_on": enabled(),
            "with_frames": sum(bool(block.get("frames")) for block in blocks),
            "hook": hook() if handle is not None else None, "rows": []}


if __name__ == "__main__":
    children.answer({"cost": cost, "profile": profile, "recorder": recorder})
