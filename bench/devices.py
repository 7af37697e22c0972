# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Two GPUs in one process: is each byte told of the device it lies on?

    python bench/devices.py

Each check is a process of its own and prints what it saw; exit status 1 when
one failed.  Needs two GPUs and torch; JAX where it is installed.
"""

import sys

import checks

BEGIN = """
import gc, json, os, random, sys, threading
import cumem
if cumem.status()["interceptor"] == "none" and os.environ["CUMEM_WARN_CYCLES"] == "1":
    import cumem._start  # a build folder has no cumem.pth
    cumem._start.main()

class Node:
    pass

def cycle(held):
    node = Node()
    node.held, node.me = held, node

def storages():
    report = cumem.find_cycles().report
    return sorted((one["device"], one["bytes"]) for one in report["storages"])
"""

CHECKS = {
    "half a million allocations on each, by turns of two threads": ({"CUMEM_WARN_CYCLES": 1}, """
import torch
from cumem import _core
torch.ones(1, device="cuda:0"), torch.ones(1, device="cuda:1")
gc.collect()
def work(device, seed):
    rng, kept = random.Random(seed), []
    for _ in range(50_000):
        kept.append(torch.empty(rng.randrange(1, 1 << 16), device=device))
        if len(kept) > 300:
            kept.pop(rng.randrange(len(kept)))
def compare():
    for index in range(2):
        heard, told = _core.blocks_use()[index][0], torch.cuda.memory_allocated(index)
        assert heard == told, (index, heard, told)
compare()
for turn in range(5):
    threads = [threading.Thread(target=work, args=(f"cuda:{i % 2}", 5 * turn + i)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    compare()
hook = cumem.status()["allocator_hook"]
print(hook["events"], "events, lost", hook["lost"], "mismatches", hook["mismatches"])
assert hook["lost"] == hook["mismatches"] == 0
"""),
    "equal dead cycles on both are one finding, each byte on its device": ({"CUMEM_WARN_CYCLES": 1}, """
import torch
torch.ones(1, device="cuda:1")
gc.collect(); gc.disable()
cycle(torch.ones(1 << 20, device="cuda:0"))
cycle(torch.ones(1 << 21, device="cuda:1"))
report = cumem.find_cycles().report
dead = {one["name"]: one["dead_peak"] for one in report["devices"]}
print([(one["count"], one["total_bytes"]) for one in report["cycles"]], dead)
assert [(one["count"], one["total_bytes"]) for one in report["cycles"]] == [(2, 12 << 20)]
assert (dead["cuda:0"], dead["cuda:1"]) == (4 << 20, 8 << 20)
"""),
    "growth on the second alone": ({"CUMEM_WARN_CYCLES": 1}, """
import torch
model = torch.nn.Linear(512, 512, device="cuda:0")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for _ in range(30):
    model(torch.ones(8, 512, device="cuda:0")).sum().backward()
    optimizer.step(); optimizer.zero_grad()
    kept.append(torch.ones(1 << 18, device="cuda:1"))
rows = [row for row in cumem.growth() if row["verdict"] == "leak"]
print([(row["device"], row["bytes_per_iteration"], row["advice"]) for row in rows])
assert [(row["device"], row["bytes_per_iteration"]) for row in rows] == [("cuda:1", 1 << 20)]
"""),
    "memory() of each": ({"CUMEM_WARN_CYCLES": 1}, """
import torch
kept = torch.ones(1 << 20, device="cuda:0"), torch.ones(1 << 22, device="cuda:1")
for index in range(2):
    row = cumem.memory(f"cuda:{index}")
    print({key: row[key] for key in ("allocated", "reserved", "outside_frameworks", "total")})
    assert row["allocated"] == torch.cuda.memory_allocated(index)
    assert row["outside_frameworks"] > 0
"""),
    "CUMEM_DRIVER=1: cudaMalloc on the second": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 1}, """
import ctypes, torch
torch.ones(1, device="cuda:0"), torch.ones(1, device="cuda:1")
gc.collect()
runtime = ctypes.CDLL(next(l.split()[-1] for l in open("/proc/self/maps") if "libcudart" in l))
assert runtime.cudaSetDevice(1) == 0
assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(32 << 20)) == 0
rows = [(row["device"], row["bytes"]) for row in cumem.find_cycles().report.get("held", [])
        if row["framework"] == "driver"]
print(rows, cumem.status()["driver"]["hook"])
assert any(device == "cuda:1" and size >= 32 << 20 for device, size in rows), rows
"""),
    "a JAX array over both": ({"CUMEM_WARN_CYCLES": 0, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, """
try:
    import jax
except ImportError:
    print("JAX is not installed")
    raise SystemExit
from jax.sharding import Mesh, NamedSharding, PartitionSpec
handle = cumem.observe_tensor_cycles(lambda page: None)
x = jax.device_put(jax.numpy.ones(1 << 20), NamedSharding(Mesh(jax.devices(), ("x",)), PartitionSpec("x")))
x.block_until_ready()
gc.collect(); gc.disable()
cycle(x * 2)
print(storages())
assert storages() == [("cuda:0", 2 << 20), ("cuda:1", 2 << 20)]
"""),
    "DDP over NCCL, a leak in the second of two ranks": ({"CUMEM_WARN_CYCLES": 0}, """
import glob, subprocess
open("train.py", "w").write('''
import os, torch
import cumem
if cumem.status()["interceptor"] == "none":
    import cumem._start  # a build folder has no cumem.pth
    cumem._start.main()
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512, device="cuda"))
optimizer, kept = torch.optim.AdamW(model.parameters()), []
for _ in range(40):
    output = model(torch.ones(512, 512, device="cuda"))
    output.square().mean().backward()
    optimizer.step(); optimizer.zero_grad()
    if rank == 1:
        kept.append(output)
row = cumem.memory(f"cuda:{rank}")
print("rank", rank, {key: row[key] for key in ("allocated", "outside_frameworks")})
torch.distributed.destroy_process_group()
''')
told = subprocess.run(
    [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "train.py"],
    env={**os.environ, "CUMEM_WARN_CYCLES": "1"}, capture_output=True, text=True)
lines = [line for line in told.stderr.splitlines() if "cumem" in line or "LEAK" in line or "held" in line]
print(told.stdout, *lines, *glob.glob("leak-*"), sep="\\n")
assert told.returncode == 0, told.stderr[-2000:]
assert any(line.startswith("cumem [rank 1]: cuda:1 grows") for line in lines)
assert not any("[rank 0]" in line for line in lines)
assert [name.split("-")[1] for name in glob.glob("leak-*.json")] == ["r1"]
"""),
}

if __name__ == "__main__":
    sys.exit(checks.run(BEGIN, CHECKS))
