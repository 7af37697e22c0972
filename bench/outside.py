# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""CUMEM_DRIVER=1, torch's recorder and torch's pools on a machine with a GPU and torch; three minutes.

    python bench/outside.py

Each check is a process of its own and prints what it saw; exit status 1 when one failed.
"""

import sys

import checks

BEGIN = """
import gc, logging, os, sys
logging.basicConfig(format="warning: %(message)s")
if os.environ["CUMEM_WARN_CYCLES"] == "1" and "cumem" not in sys.modules:
    import cumem._start  # a build folder has no cumem.pth
    cumem._start.main()
import torch, cumem

def driver():
    return cumem.status()["driver"]

def held():
    report = cumem.find_cycles().report
    sites = {site["id"]: site for site in report["sites"]}
    for row in report.get("held", []):
        frames = sites[row["site"]]["frames"] if row["site"] in sites else []
        at = next((f"{f['filename']}:{f['line']} {f['name']}" for f in frames), "?")
        yield row["framework"], row.get("library"), row["bytes"], row["count"], at
"""

RUNTIME = """
import ctypes
def library(name):
    return ctypes.CDLL(next(l.split()[-1] for l in open("/proc/self/maps") if name in l))
torch.ones(1, device="cuda")
gc.collect()
assert driver()["hook"] == "driver", driver()
runtime, pointer = library("libcudart"), ctypes.c_void_p()
"""

# cudaMalloc past torch, as a library would; then NCCL where it is built in.
OUTSIDE = """
import ctypes
def malloc():
    runtime = ctypes.CDLL(next(l.split()[-1] for l in open("/proc/self/maps") if "libcudart" in l))
    assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(32 << 20)) == 0
def matmul():
    x = torch.ones(2048, 2048, device="cuda")
    return torch.nn.functional.linear(x.half(), x.half(), x[0].half())
def nccl():
    torch.distributed.init_process_group("nccl", init_method="tcp://127.0.0.1:29511", rank=0, world_size=1)
    torch.distributed.all_reduce(torch.ones(1 << 20, device="cuda"))
    torch.cuda.synchronize()
kept = [matmul()]
malloc()
if torch.distributed.is_nccl_available():
    nccl()
rows = list(held())
for row in rows:
    print(*row)
print(driver())
assert driver()["hook"] == "driver" and driver()["trouble"] is None
assert any(row[0] == "driver" and row[2] >= 32 << 20 for row in rows), "cudaMalloc was not seen"
assert not any("libc10_cuda" in (row[1] or "") for row in rows)
print(cumem.memory(), flush=True)
os._exit(0)
"""

# Dead cycles, whose storage must have the line that allocated it.
DEAD = """
class Node: pass
def allocate():
    return torch.ones(8 << 20, device="cuda")
def make():
    node = Node()
    node.link, node.tensor = node, allocate()
gc.disable()
make()
report = cumem.find_cycles().report
storage, = report["storages"]
site = next(s for s in report["sites"] if s["id"] == storage["site"])
print([(f["name"], f["line"]) for f in site["frames"]], storage)
assert site["frames"][0]["name"] == "allocate"
"""

# What torch's own snapshot says, beside what cumem.memory() does.
POOLS = """
MIB = 1 << 20
def floats(mib):
    return torch.ones(mib * MIB // 4, device="cuda")
def snapshot():
    segments = torch.cuda.memory_snapshot()
    blocks = [block for segment in segments for block in segment["blocks"]]
    return {
        "private_pools": sum(s["total_size"] for s in segments if tuple(s["segment_pool_id"]) != (0, 0)),
        "pending_free": sum(b["size"] for b in blocks if b["state"] == "active_pending_free"),
        "reserved": sum(s["total_size"] for s in segments),
        "largest_free": max((b["size"] for s in segments if tuple(s["segment_pool_id"]) == (0, 0)
                             for b in s["blocks"] if b["state"] == "inactive"), default=0),
    }
"""

CHECKS = {
    "private pools, and memory that waits for a stream": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 0}, POOLS + """
static, graph = floats(8), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = (static * 2).exp()
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    own = floats(48)
side = torch.cuda.Stream()
lent = floats(32)
torch.cuda.synchronize()
with torch.cuda.stream(side):
    torch.cuda._sleep(20_000_000_000)  # cycles: ten seconds
lent.record_stream(side)
del lent
expected, found = snapshot(), cumem.memory()
print({name: (found[name], expected[name]) for name in expected})
assert expected["pending_free"] >= 32 * MIB and expected["private_pools"] >= 56 * MIB
assert all(found[name] == expected[name] for name in expected)
private = [pool for pool in found["pools"] if pool["name"] != "common"]
assert len(private) == 2 and sum(pool["reserved"] for pool in private) == expected["private_pools"], private
text = cumem.find_cycles().text
print(text)
assert "MiB in private pools" in " ".join(text.split())
"""),
    "memory that ran out in pieces": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 0, "CUMEM_OUTPUT": "pieces.json"},
                                      POOLS + """
import json
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(2048 * MIB / total)
kept = [floats(4) for _ in range(480)]
kept = kept[::2]  # half of it is free, in pieces of 4 MiB
expected = snapshot()
stderr = os.dup(2)
os.dup2(os.open("told", os.O_CREAT | os.O_WRONLY), 2)
try:
    floats(512)
except torch.OutOfMemoryError as error:
    print("torch:", str(error)[:100])
cumem.flush()
os.dup2(stderr, 2)
told = open("told").read()
print(told)
assert "cached in pieces of at most" in told and "expandable_segments:True" in told
device, = json.load(open("pieces.json"))["devices"]
print({name: device[name] for name in ("allocated", "reserved", "largest_free")}, expected)
assert device["largest_free"] == expected["largest_free"] < 16 * MIB
assert device["reserved"] - device["allocated"] > 512 * MIB
"""),
    "without torch's caching": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 0, "PYTORCH_NO_CUDA_MEMORY_CACHING": 1}, """
torch.ones(1, device="cuda")
gc.collect()
print(cumem.status()["allocator_hook"])
assert cumem.status()["allocator_hook"]["hook"] != "torch slot"
""" + DEAD),
    "with cudaMallocAsync": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 0,
                              "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, """
torch.ones(1, device="cuda")
gc.collect()
print(cumem.status()["allocator_hook"])
assert cumem.status()["allocator_hook"]["hook"] != "torch slot"
""" + DEAD),
    "injected": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 1}, OUTSIDE),
    "subscribed at run time": ({"CUMEM_WARN_CYCLES": 0, "CUMEM_DRIVER": 1}, "cumem.warn_tensor_cycles()\n" + OUTSIDE),
    "torch.profiler beside it": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 1}, """
x = torch.ones(1 << 20, device="cuda")
gc.collect()
with torch.profiler.profile() as profile:
    (x * 2).sum().item()
    gc.collect()
cumem.flush()
print("GPU events:", sum(e.device_type.name == "CUDA" for e in profile.events()), driver())
"""),
    "torch.profiler before it": ({"CUMEM_WARN_CYCLES": 0, "CUMEM_DRIVER": 1}, """
x = torch.ones(1 << 20, device="cuda")
with torch.profiler.profile() as profile:
    (x * 2).sum().item()
cumem.warn_tensor_cycles()
gc.collect()
cumem.flush()
print(driver())
with torch.profiler.profile() as profile:
    (x * 2).sum().item()
    gc.collect()
cumem.flush()
print("GPU events:", sum(e.device_type.name == "CUDA" for e in profile.events()))
"""),
    "each of the runtime's allocations": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 1}, RUNTIME + """
def grown(name, size, *arguments):
    before = driver()["live_bytes"]
    result = getattr(runtime, name)(ctypes.byref(pointer), ctypes.c_size_t(size), *arguments)
    grown_by = driver()["live_bytes"] - before
    print(name, size, "result", result, "bytes", grown_by)
    return result, grown_by
MIB = 1 << 20
for name, arguments, free in (("cudaMalloc", [], lambda: runtime.cudaFree(pointer)),
                              ("cudaMallocManaged", [1], lambda: runtime.cudaFree(pointer)),
                              ("cudaMallocAsync", [None],
                               lambda: runtime.cudaFreeAsync(pointer, None))):
    result, grown_by = grown(name, 4 * MIB, *arguments)
    assert result == 0 and grown_by >= 4 * MIB
    assert free() == 0
result, grown_by = grown("cudaMalloc", 1 << 50)
assert result != 0 and grown_by == 0
print("cudaDeviceReset", runtime.cudaDeviceReset(), driver())
assert driver()["live_bytes"] == 0
sys.stdout.flush()
os._exit(0)  # torch cannot live without its context
"""),
    "expandable segments": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 1,
                             "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, RUNTIME + """
before = driver()["live_bytes"]
x = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
grown = driver()["live_bytes"] - before
del x
torch.cuda.empty_cache()
left = driver()["live_bytes"] - before  # below 0: the small segment went too
print(grown, left)
assert grown >= 100 << 20 and left <= 0
"""),
    "CUPTI shut down by another tool": ({"CUMEM_WARN_CYCLES": 1, "CUMEM_DRIVER": 1}, RUNTIME + """
print("cuptiFinalize", library("libcupti").cuptiFinalize())
cumem.flush()
print(driver())
assert "shut down" in driver()["trouble"]
"""),
    # Without an observer the slot is not heard and tensors have no stacks of ours.
    "the recorder": ({"CUMEM_WARN_CYCLES": 0, "CUMEM_DRIVER": 0}, """
from cumem import _recorder
torch.ones(1, device="cuda")
with cumem.observe_tensor_cycles(print):
    print(cumem.status()["allocator_hook"]["hook"])
_recorder.arm(True)
hook = cumem.status()["allocator_hook"]
assert hook["hook"] == "recorder" and torch._C._cuda_isHistoryEnabled(), hook
class Node: pass
def allocate():
    return torch.ones(8 << 20, device="cuda")
node = Node()
node.link, node.tensor = node, allocate()
del node
report = cumem.find_cycles().report
storage, = report["storages"]
site = next(s for s in report["sites"] if s["id"] == storage["site"])
print([(f["name"], f["line"]) for f in site["frames"]], storage)
assert site["frames"][0]["name"] == "allocate"
assert not torch._C._cuda_isHistoryEnabled()
"""),
}

if __name__ == "__main__":
    sys.exit(checks.run(BEGIN, CHECKS))
