# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What share of a training loop the hooks take, counted by the processor's clock inside them.

    python bench/hooks.py [--build FOLDER] [--output FILE]

A loop's wall time hides one percent in its noise, and virtual machines count no
instructions; this counts what cumem's own hooks take in the loops of
bench/train.py, with what a job under CUMEM_WARN_CYCLES=1 has on, less what an
empty hook would show for the reading of the clock.  What they cost the program
besides, by the cache lines that they take, is not in it.  Builds cumem with
-DCUMEM_METER=ON in FOLDER, a temporary one unless given.
"""

import argparse
import ctypes
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import loop
import measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
READS = 1000
HOOKS = ("allocation", "free", "tensor", "tensor's end", "collection starts",
         "collection ends", "garbage", "backward", "iteration")
# Model, live objects, live tensors of 80 kB, dead cycles an iteration, and whether a
# callback observes these.
CASES = [("mlp", 1_000, 0, 0, False), ("mlp", 300_000, 0, 0, False),
         ("mlp", 1_000_000, 0, 0, False), ("mlp", 1_000, 10_000, 0, False),
         ("transformer", 1_000, 0, 0, False), ("transformer", 1_000_000, 0, 0, False),
         ("mlp", 1_000, 0, 4, False), ("mlp", 1_000, 0, 4, True)]


def build(folder):
    for command in (["cmake", "-S", ROOT, "-B", folder, "-DCUMEM_METER=ON",
                     f"-DPython_EXECUTABLE={sys.executable}"],
                    ["cmake", "--build", folder, "-j", str(os.cpu_count())]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])


def ticks_per_second(read):
    """The processor's clock may not be what it calls its frequency."""
    ticks, seconds = read(), time.perf_counter()
    time.sleep(0.2)
    return (read() - ticks) / (time.perf_counter() - seconds)


def clock_of(folder):
    """The clock that the hooks read: now(), and what it shows of nothing, empty(times)."""
    source = pathlib.Path(folder) / "clock.c"
    source.write_text('#define CM_METER_ON\n#include "detector/meter.h"\n'
                      "uint64_t cm_meter_ticks[CM_METERS], cm_meter_counts[CM_METERS];\n"
                      "uint64_t now(void) { return cm_meter_now(); }\n"
                      "uint64_t empty(int times) { while (times-- > 0) "
                      "{ CM_METERED(CM_METER_FREE); } return cm_meter_ticks[CM_METER_FREE]; }\n")
    library = pathlib.Path(folder) / "clock.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{ROOT}", source, "-o", library],
                   check=True)
    clock = ctypes.CDLL(str(library))
    clock.now.restype = clock.empty.restype = ctypes.c_uint64
    return clock


def measure_case(model, live, tensors, cycles, observed, iterations, folder):
    """One process, everything on, for seconds of `iterations` a turn."""
    loop.start_cumem()
    import torch
    from cumem import _core

    device = "cuda" if torch.cuda.is_available() else "cpu"
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    if device == "cpu":
        torch.set_num_threads(1)
    core = ctypes.CDLL(_core.__file__)
    ticks = (ctypes.c_uint64 * len(HOOKS)).in_dll(core, "cm_meter_ticks")
    counts = (ctypes.c_uint64 * len(HOOKS)).in_dll(core, "cm_meter_counts")
    clock = clock_of(folder)
    rate = ticks_per_second(clock.now)
    reading = clock.empty(READS) / READS
    keep = [[i] for i in range(live)]
    blocks = [torch.empty(20_000, device=device) for _ in range(tensors)]
    if observed:
        import cumem

        cumem.observe_tensor_cycles(lambda page: None)
    step = loop._step_of(torch, {"model": model, "cycles": cycles}, device)
    for _ in range(100):
        step()
    gc.collect()
    turns = []
    for _ in range(7):
        before = list(ticks), list(counts)
        began = time.perf_counter()
        for _ in range(iterations):
            step()
        synchronize()
        seconds = time.perf_counter() - began
        turns.append({
            "iteration_us": seconds / iterations * 1e6,
            "hooks": {name: _use(ticks[i] - before[0][i], counts[i] - before[1][i], reading,
                                 rate, iterations) for i, name in enumerate(HOOKS)}})
    status = _status()
    print(json.dumps({"turns": turns, "live": len(keep), "tensors": len(blocks), "status": status,
                      "reading_ns": reading / rate * 1e9}))


def _use(ticks, count, reading, rate, iterations):
    """[microseconds, calls] an iteration, without what an empty hook would show."""
    return [(ticks - count * reading) / rate / iterations * 1e6, count / iterations]


def _status():
    import cumem

    cumem.flush(30)
    status = cumem.status()
    return {key: status[key] for key in ("interceptor", "allocator_hook", "stacks", "lost")
            if key in status}


def share(turn):
    return sum(us for us, _ in turn["hooks"].values()) / turn["iteration_us"]


def lines_of(name, result):
    median = sorted(result["turns"], key=share)[len(result["turns"]) // 2]
    yield f"--- {name}: {share(median):.2%} of {median['iteration_us']:.0f} us an iteration (" \
        + ", ".join(f"{share(turn):.2%}" for turn in result["turns"]) \
        + f"); the clock's own {result['reading_ns']:.0f} ns a call are taken off"
    for hook, (us, count) in median["hooks"].items():
        if count:
            yield f"  {hook:18} {count:8.2f} an iteration {us:8.2f} us {us / count * 1e3:8.0f} ns each"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build")
    parser.add_argument("--output", help="base name of the results (.txt, .json)")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.case:
            measure_case(*json.loads(options.case), options.iterations, scratch)
            return
        folder = options.build or os.path.join(scratch, "build")
        build(folder)
        report(options, folder)


def report(options, folder):
    machine = measure.machine()
    lines = ["command: python bench/hooks.py", json.dumps(machine)]
    results = {}
    environment = {**os.environ, "PYTHONPATH": os.path.join(folder, "python"),
                   **loop.cumem_environment()}
    for case in CASES:
        done = subprocess.run(
            [sys.executable, __file__, "--case", json.dumps(case),
             "--iterations", str(options.iterations)],
            env=environment, capture_output=True, text=True)
        name = f"{case[0]}, {case[1]:,} live objects" \
            + (f", {case[2]:,} live tensors" if case[2] else "") \
            + (f", {case[3]} cycles" if case[3] else "") \
            + (" under observe_tensor_cycles" if case[4] else "")
        if done.returncode != 0:
            lines.append(f"--- {name}: failed: {done.stderr[-300:]}")
            continue
        results[name] = json.loads(done.stdout.splitlines()[-1])
        lines += lines_of(name, results[name])
    print("\n".join(lines))
    if options.output:
        pathlib.Path(options.output + ".txt").write_text("\n".join(lines) + "\n")
        pathlib.Path(options.output + ".json").write_text(
            json.dumps({"machine": machine, "results": results}))


if __name__ == "__main__":
    main()
