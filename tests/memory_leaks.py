# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""leak.json documents that say where a device's memory is.

    python3 tests/memory_leaks.py oom > tests/oom_h200.leak.json
"""

import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import page_leaks  # noqa: E402
from page_leaks import GIB, MIB, TORCH, frame  # noqa: E402

TOTAL = 150121545728  # an H200 as CUDA counts it


def sites(leak):
    """Where memory is allocated that no Python object explains."""
    forward = leak.site(
        frame(TORCH + "nn/functional.py", 2317, "linear", library=True),
        frame("/home/ada/job/model.py", 88, "Block.forward",
              "        x = x + self.mlp(self.norm(x))"),
        frame("/home/ada/job/train.py", 57, "main",
              "        loss = model(batch)"))
    backward = leak.site(
        frame(TORCH + "autograd/graph.py", 841,
              "_engine_run_backward", library=True),
        frame(TORCH + "_tensor.py", 648, "Tensor.backward", library=True),
        frame("/home/ada/job/train.py", 58, "main",
              "        loss.backward()"))
    nccl = leak.site(
        frame(TORCH + "distributed/distributed_c10d.py", 2810, "all_reduce",
              library=True),
        frame("/home/ada/job/train.py", 31, "setup",
              "    dist.all_reduce(ready)"))
    return forward, backward, nccl


def iterations(count=640):
    """number, start, end, peak: warming up, then growing a little."""
    rows = []
    for i in range(count):
        base = int(58 * GIB + min(i, 12) * GIB // 4 + i * 6 * MIB)
        wave = int(2.5 * GIB * (1 + math.sin(i / 9)))
        rows.append([i, base, base + 6 * MIB, base + 56 * GIB + wave])
    return rows


def use():
    """The numbers of cuda:0 when memory ran out: they add up to the total."""
    allocated, pending = int(124.9 * GIB), 96 * MIB
    reserved = allocated + int(9.1 * GIB)
    cupy, outside, others = int(1.2 * GIB), int(2.3 * GIB), 612 * MIB
    return {
        "total": TOTAL, "allocated": allocated, "reserved": reserved,
        "peak_allocated": int(125.4 * GIB), "cached": reserved - allocated - pending,
        "pending_free": pending, "private_pools": int(3.2 * GIB),
        "outside_frameworks": outside, "other_processes": others,
        "free": TOTAL - reserved - cupy - outside - others,
        "largest_free": 384 * MIB, "asked_bytes": 8 * GIB,
        "frameworks": [
            {"name": "torch", "allocated": allocated, "reserved": reserved},
            {"name": "cupy", "allocated": cupy - 200 * MIB,
             "reserved": cupy}],
        "pools": [
            {"name": "common", "reserved": reserved - int(3.2 * GIB),
             "allocated": allocated - int(2.6 * GIB),
             "requested": allocated - int(5.1 * GIB),
             "pending_free": 96 * MIB, "largest_free": 384 * MIB,
             "segments": 1214},
            {"name": "(0, 1)", "reserved": int(3.2 * GIB),
             "allocated": int(2.6 * GIB), "requested": int(2.5 * GIB),
             "pending_free": 0, "largest_free": 580 * MIB, "segments": 9}],
        "iterations": iterations()}


def add_held(leak):
    forward, backward, nccl = sites(leak)
    leak.data["held"] = [
        {"device": "cuda:0", "framework": "torch", "site": forward,
         "bytes": int(8.4 * GIB), "count": 192},
        {"device": "cuda:0", "framework": "torch", "site": backward,
         "awaited": True, "bytes": int(3.1 * GIB), "count": 64},
        {"device": "cuda:0", "framework": "driver",
         "library": "libnccl.so.2", "site": nccl, "bytes": int(1.4 * GIB),
         "count": 12},
        {"device": "cuda:0", "framework": "torch", "site": None,
         "bytes": 900 * MIB, "count": 3},
        {"device": "cuda:0", "framework": "driver",
         "library": "libcublasLt.so.12", "site": None, "bytes": 420 * MIB,
         "count": 2}]


def oom(**changes):
    """Out of memory on an H200, with findings, fragmented."""
    leak = page_leaks.real()
    leak.data["devices"][0].update(use(), **changes)
    add_held(leak)
    storage = leak.data["storages"][0]
    storage.update(bytes=16 * MIB, block_bytes=18 * MIB,
                   stream="0x55d0c7a1b2f0", thread=4742, pool="(0, 1)",
                   site=leak.data["held"][1]["site"], awaited=True)
    return leak


def oom_only(**changes):
    """The same without any finding."""
    leak = page_leaks.nothing()
    leak.data["devices"][0].update(use(), **changes)
    add_held(leak)
    return leak


def well():
    """Nothing ran out; two devices, one of them hardly known."""
    leak = page_leaks.real()
    device = leak.data["devices"][0]
    device.update(use(), asked_bytes=0, largest_free=9 * GIB)
    device["pools"][0]["largest_free"] = 9 * GIB
    leak.data["devices"].append(
        {"name": "cuda:1", "total": TOTAL, "allocated": 0, "reserved": 0,
         "peak_allocated": 0, "dead_peak": 0, "dead_peak_iteration": None,
         "free": TOTAL - 600 * MIB, "other_processes": 600 * MIB})
    return leak


def hostile(text):
    """`text` in every place of the account of memory."""
    leak = page_leaks.hostile(text)
    leak.data["devices"][0].update(use())
    device = leak.data["devices"][0]
    for row in device["frameworks"] + device["pools"][1:]:
        row["name"] = text
    site = leak.site(frame(text, 7, text, text))
    leak.data["held"] = [
        {"device": text, "framework": framework, "library": text,
         "site": site, "awaited": True, "bytes": MIB * 70, "count": 2}
        for framework in (text, "driver")]
    leak.data["storages"][0].update(pool=text, thread=7, awaited=True,
                                    block_bytes=3 * MIB)
    return leak


if __name__ == "__main__":
    print(globals()[sys.argv[1]]().json())
