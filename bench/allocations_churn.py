# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Case b of allocations.py: a million allocations, and torch's own byte count.

Threads allocate in rounds; while they stand still, sums, blocks, sizes and
streams are compared.  Then what else an allocator does: CUDA graphs, a
MemPool, running out of memory, giving all back.
"""

import gc
import os
import random
import threading
import time

import children
from allocations_gpu import DEVICE, observe
from allocations_gpu import hook as told

THREADS, KEPT, ROUND = 4, 256, 5_000
MOST_BYTES = 22  # bits
ON_SIDE = 50  # one of so many allocations is on a side stream


# -- what must be equal -----------------------------------------------------

class Ledger:
    """Compares our sums and blocks with torch's while no thread allocates."""

    def __init__(self):
        self.checks, self.wrong, self.snapshots = 0, [], []

    def check(self, where):
        import torch
        from cumem import _core

        ours = _core.blocks_use().get(0, (0, 0, 0, 0, 0))[0]
        theirs = torch.cuda.memory_allocated(0)
        self.checks += 1
        if ours != theirs and len(self.wrong) < 20:
            self.wrong.append((where, ours, theirs))

    def compare(self, where):
        from cumem import _core

        self.check(where)
        theirs = _snapshot_blocks()
        ours = {address: (size, stream) for address, size, device, stream, *_
                in _core.blocks() if device == 0}
        both = ours.keys() & theirs.keys()
        self.snapshots.append({
            "where": where, "blocks": len(theirs),
            "missing": len(theirs.keys() - ours.keys()),
            "extra": len(ours.keys() - theirs.keys()),
            "sizes_equal": sum(ours[key][0] == theirs[key][0] for key in both),
            "streams_told": sum(ours[key][1] is not None for key in both),
            "streams_equal": sum(ours[key][1] == theirs[key][1] for key in both),
            "examples": [[hex(key), ours.get(key), theirs.get(key)]
                         for key in (ours.keys() | theirs.keys())
                         if ours.get(key) != theirs.get(key)][:3]})

    def judge(self, checks):
        checks.expect("bytes are memory_allocated() at each check",
                      f"{self.checks} of {self.checks}",
                      f"{self.checks - len(self.wrong)}"
                      + (f"; (where, ours, torch's) {self.wrong[:5]}" if self.wrong else ""),
                      not self.wrong and self.checks > 0)
        blocks = sum(row["blocks"] for row in self.snapshots)
        equal = sum(row["sizes_equal"] for row in self.snapshots)
        strange = sum(row["missing"] + row["extra"] for row in self.snapshots)
        bad = [row for row in self.snapshots if row["sizes_equal"] != row["blocks"]]
        checks.expect("blocks and sizes are memory_snapshot()'s", f"{blocks:,} equal",
                      f"{equal:,} equal, {strange} in one only"
                      + (f"; {bad[0]['examples']}" if bad else ""),
                      equal == blocks and strange == 0 and blocks > 0)
        told = sum(row["streams_told"] for row in self.snapshots)
        right = sum(row["streams_equal"] for row in self.snapshots)
        checks.expect("streams told", "(none required)",
                      f"{told:,} of {blocks:,}, {right:,} as in memory_snapshot()", None)


def _snapshot_blocks():
    """{address: (bytes, stream)} of what is allocated, as torch lists it."""
    import torch

    found = {}
    for segment in torch.cuda.memory_snapshot():
        if segment["device"] != 0:
            continue
        address = segment["address"]
        for block in segment["blocks"]:
            start = block.get("address", address)
            address = start + block["size"]
            if block["state"] == "active_allocated":
                found[start] = (block["size"], segment["stream"])
    return found


# -- the threads ------------------------------------------------------------

class Churn:
    """Threads that allocate in rounds and stand still in between."""

    def __init__(self, total):
        self.rounds = max(1, total // (THREADS * ROUND))
        self.each = max(1, total // (THREADS * self.rounds))
        self.done, self.errors, self.over = 0, [], False
        self.barrier = threading.Barrier(THREADS + 1)
        self.threads = [threading.Thread(target=self._thread, args=(number,))
                        for number in range(THREADS)]

    def _thread(self, number):
        try:
            self._allocate(number)
        except threading.BrokenBarrierError:
            pass
        except Exception as error:
            self.errors.append(error)
            self.barrier.abort()

    def _allocate(self, number):
        import torch

        dice = random.Random(number)
        side, other = torch.cuda.Stream(), torch.cuda.Stream()
        kept = []
        while True:
            self.barrier.wait(300)
            if self.over:
                break
            for i in range(self.each):
                size = dice.randrange(1, 1 << dice.randrange(1, MOST_BYTES + 1))
                if i % ON_SIDE == 0:
                    with torch.cuda.stream(side):
                        tensor = torch.empty(size, dtype=torch.uint8, device=DEVICE)
                    tensor.record_stream(other)
                else:
                    tensor = torch.empty(size, dtype=torch.uint8, device=DEVICE)
                if len(kept) < KEPT:
                    kept.append(tensor)
                else:
                    kept[dice.randrange(KEPT)] = tensor
            del tensor
            self.barrier.wait(300)

    def run(self, ledger, seconds):
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.start()
        try:
            for number in range(self.rounds):
                if time.monotonic() > end:
                    break
                self.barrier.wait(300)
                self.barrier.wait(300)
                self.done += THREADS * self.each
                ledger.check(f"round {number}")
                if number % max(1, self.rounds // 5) == 0:
                    ledger.compare(f"threads, round {number}")
            self.over = True
            self.barrier.wait(300)
        except threading.BrokenBarrierError:
            pass
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]


def churn(spec):
    import torch

    checks, ledger = children.Checks(), Ledger()
    handle = observe()
    work = Churn(spec["total"])
    begun = time.monotonic()
    with checks.part("allocations in 4 threads"):
        work.run(ledger, spec["seconds"])
    seconds = time.monotonic() - begun
    hook = told()
    ledger.check("after the threads")
    checks.expect("allocations", f"{work.rounds * work.each * THREADS:,}", f"{work.done:,}",
                  work.done == work.rounds * work.each * THREADS)
    checks.expect("events are 2 for each allocation", f"{2 * work.done:,}",
                  f"{hook['events']:,}", hook["events"] == 2 * work.done)
    for name, part in PARTS.items():
        if name == "MemPool" and spec.get("expandable"):
            continue  # torch refuses the two together
        with checks.part(name):
            part(torch, ledger)
        gc.collect()
        with checks.part(f"after {name}"):
            ledger.compare(f"after {name}")
    hook = told()
    ledger.judge(checks)
    for key in ("mismatches", "lost", "unknown_frees"):
        checks.expect(key, 0, hook[key], hook[key] == 0)
    handle.remove()
    return {"rows": checks.rows, "allocations": work.done, "seconds": seconds,
            "checks": ledger.checks, "snapshots": ledger.snapshots, "hook": hook}


# -- what else an allocator does --------------------------------------------

def _graphs(torch, ledger):
    """Capture with a backward pass in a private pool, replays, a second graph in it."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, 256)).to(DEVICE)
    batch = torch.randn(64, 256, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(batch).square().mean().backward()
            model.zero_grad(set_to_none=True)
    torch.cuda.current_stream().wait_stream(side)
    ledger.compare("before capture")
    graph, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = model(batch).square().mean()
        loss.backward()
    ledger.compare("after capture")
    for number in range(20):
        graph.replay()
        ledger.check(f"replay {number}")
        kept = torch.empty(1 << 20, device=DEVICE)
        ledger.check(f"allocated after replay {number}")
    with torch.no_grad(), torch.cuda.graph(second, pool=graph.pool()):
        out = model(batch)
    for _ in range(5):
        second.replay()
        graph.replay()
    ledger.compare("two graphs of one pool")
    del out, kept, loss
    second.reset()
    graph.reset()
    torch.cuda.synchronize()
    ledger.check("graphs reset")


def _mem_pool(torch, ledger):
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = [torch.empty(1 << bits, device=DEVICE) for bits in range(8, 24)]
        ledger.check("in a MemPool")
        del kept[::2]
        ledger.check("half of a MemPool freed")
    kept.append(torch.empty(1 << 20, device=DEVICE))
    ledger.compare("MemPool")
    del kept, pool
    ledger.check("MemPool gone")


def _out_of_memory(torch, ledger):
    """A request that can never be met; then a limit that is reached bit by bit."""
    def refused(size):
        try:
            return torch.empty(size, dtype=torch.uint8, device=DEVICE)
        except torch.cuda.OutOfMemoryError:
            return None

    # Expandable segments would map all of the device before they give up.
    if "expandable" not in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        if refused(1 << 46) is not None:
            raise RuntimeError("64 TiB were allocated")
        ledger.check("refused by the driver")
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((1 << 30) / total)
    try:
        if refused(1 << 34) is not None:
            raise RuntimeError("16 GiB were allocated where 1 is allowed")
        ledger.check("refused at once")
        kept, tensor = [], refused(48 << 20)
        while tensor is not None and len(kept) < 1000:
            kept.append(tensor)
            tensor = refused(48 << 20)
        ledger.compare(f"out of memory after {len(kept)} blocks")
        if tensor is not None:
            raise RuntimeError("the limit of 1 GiB was not kept")
        del kept[::3]
        ledger.check("some freed after out of memory")
        del kept
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    ledger.check("all freed after out of memory")


def _empty_cache(torch, ledger):
    kept = [torch.empty(3 << 20, device=DEVICE) for _ in range(30)]
    del kept[::2]
    for number in range(5):
        torch.cuda.empty_cache()
        ledger.check(f"empty_cache {number}")
        kept.append(torch.empty(1 << (10 + number), device=DEVICE))
    ledger.compare("empty_cache")


PARTS = {"CUDA graphs": _graphs, "MemPool": _mem_pool, "out of memory": _out_of_memory,
         "empty_cache": _empty_cache}


if __name__ == "__main__":
    children.answer({"churn": churn})
