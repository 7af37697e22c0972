# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What share of a training loop the hooks take, counted by the processor's clock inside them.

    python bench/hooks.py [--build FOLDER] [--output FOLDER] [--seconds SECONDS]
                          [--cores own|one]

A loop's wall time hides one percent in its noise, and virtual machines count no
instructions; this counts what cumem's own hooks take in the loops of
bench/train.py, with what a job under CUMEM_WARN_CYCLES=1 has on, less what an
empty hook would show for the reading of the clock.  What they cost the program
besides, by the cache lines that they take, is not in it: for this a process of
another build, which reads no clock, runs turns of ten iterations with its hooks
at work and passing over (they return as soon as they are called), some hundred
pairs that lie next to each other, and the ratio of their wall time is told with
its 95 % interval: once with its threads where the system puts them, once with all
on one core (loop.CORES).  torch's detector in the same loop stands beside them, and
the user instructions that bench/instructions.py counted, where there is its output.
Builds cumem with -DCUMEM_METER=clock and =pass in FOLDER, a temporary one unless
given.
"""

import argparse
import ctypes
import functools
import gc
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import loop
import measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
READS = 1000
LEAST = 5  # seconds of turns by wall time
PEER = 3  # iterations under torch's detector
ALL = 0xFFFFFFFF  # kinds of hooks
TURN = 10  # iterations by wall time
HOOKS = ("allocation", "free", "tensor", "tensor's end", "collection starts",
         "collection ends", "garbage", "backward", "iteration")
# Model, live objects, live tensors of 80 kB, dead cycles an iteration, and whether a
# callback observes these.
CASES = [("mlp", 1_000, 0, 0, False), ("mlp", 300_000, 0, 0, False),
         ("mlp", 1_000_000, 0, 0, False), ("mlp", 1_000, 10_000, 0, False),
         ("transformer", 1_000, 0, 0, False), ("transformer", 1_000_000, 0, 0, False),
         ("mlp", 1_000, 0, 4, False), ("mlp", 1_000, 0, 4, True)]
# The loop of the budget, alone and with equal cycles that are observed.
ALLOWED = {("mlp", 0, False): 1.01, ("mlp", 4, True): 1.05}


def build(folder, meter):
    """What it is called in the folder: one that counts, or one that can pass over."""
    folder = os.path.join(folder, meter)
    for command in (["cmake", "-S", ROOT, "-B", folder, f"-DCUMEM_METER={meter}",
                     f"-DPython_EXECUTABLE={sys.executable}"],
                    ["cmake", "--build", folder, "-j", str(os.cpu_count())]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return os.path.join(folder, "python")


def ticks_per_second(read):
    """The processor's clock may not be what it calls its frequency."""
    ticks, seconds = read(), time.perf_counter()
    time.sleep(0.2)
    return (read() - ticks) / (time.perf_counter() - seconds)


def clock_of(folder):
    """The clock that the hooks read: now(), and what it shows of nothing, empty(times)."""
    source = pathlib.Path(folder) / "clock.c"
    source.write_text('#define CM_METER_CLOCK\n#include "detector/meter.h"\n'
                      "uint64_t cm_meter_ticks[CM_METERS], cm_meter_counts[CM_METERS];\n"
                      "uint64_t now(void) { return cm_ticks_now(); }\n"
                      "uint64_t empty(int times) { while (times-- > 0) "
                      "{ CM_METERED(CM_METER_FREE); } return cm_meter_ticks[CM_METER_FREE]; }\n")
    library = pathlib.Path(folder) / "clock.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{ROOT}", source, "-o", library],
                   check=True)
    clock = ctypes.CDLL(str(library))
    clock.now.restype = clock.empty.restype = ctypes.c_uint64
    return clock


class Loop:
    """One process with everything on, warm."""

    def __init__(self, model, live, tensors, cycles, observed):
        loop.start_cumem()
        import torch
        from cumem import _core

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
        if device == "cpu":
            torch.set_num_threads(1)
        self.core = ctypes.CDLL(_core.__file__)
        self.keep = [[i] for i in range(live)]
        self.keep += [torch.empty(20_000, device=device) for _ in range(tensors)]
        if observed:
            import cumem

            cumem.observe_tensor_cycles(lambda page: None)
        self.step = loop._step_of(torch, {"model": model, "cycles": cycles}, device)
        for _ in range(100):
            self.step()
        gc.collect()


def by_wall(own, seconds):
    """What measure.ratio() says of the loop, hooks at work against passing over."""
    passing = ctypes.c_uint.in_dll(own.core, "cm_meter_passing")
    turns = {True: [], False: []}
    for _ in range(200):
        own.step()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for passes in random.sample((True, False), 2):
            passing.value = ALL if passes else 0
            own.step()  # it ends what the other ones left behind
            turns[passes].append(
                measure.timed(own.step, TURN, measure.Counter(), own.synchronize))
    passing.value = 0
    return {"ratio": measure.ratio([{"work": turns[False], "pass": turns[True]}], "work", "pass"),
            "work_ms": [turn.get("wall_ms") for turn in turns[False]],
            "pass_ms": [turn.get("wall_ms") for turn in turns[True]]}


def by_clock(own, iterations, folder):
    """Seven turns, by the clock inside the hooks."""
    ticks = (ctypes.c_uint64 * len(HOOKS)).in_dll(own.core, "cm_meter_ticks")
    counts = (ctypes.c_uint64 * len(HOOKS)).in_dll(own.core, "cm_meter_counts")
    clock = clock_of(folder)
    rate = ticks_per_second(clock.now)
    reading = clock.empty(READS) / READS
    read = functools.partial(_use, reading=reading, rate=rate, iterations=iterations)
    turns = [metered(ticks, counts, own, read, iterations) for _ in range(7)]
    return {"turns": turns, "status": _status(), "reading_ns": reading / rate * 1e9}


def under_torch(model, live, cycles):
    """How many times longer an iteration takes with torch's detector."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    _, keep, step = loop.begin({"tool": "torch", "model": model, "live": live,
                                "cycles": cycles, "cores": "own", "device": device})
    timed = functools.partial(measure.timed, step, counter=measure.Counter())
    without = timed(count=10 * PEER)["wall_ms"]
    loop.start_torch_detector(torch, device)
    return {"ratio": timed(count=PEER)["wall_ms"] / without, "live": len(keep)}


def metered(ticks, counts, own, read, iterations):
    """One turn of `iterations`."""
    before = list(ticks), list(counts)
    began = time.perf_counter()
    for _ in range(iterations):
        own.step()
    own.synchronize()
    took = time.perf_counter() - began
    return {"iteration_us": took / iterations * 1e6,
            "hooks": {name: read(ticks[i] - before[0][i], counts[i] - before[1][i])
                      for i, name in enumerate(HOOKS)}}


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
    for cores, wall in result["wall"].items():
        yield from lines_of_wall(wall, cores)
    for hook, (us, count) in median["hooks"].items():
        if count:
            yield f"  {hook:18} {count:8.2f} an iteration {us:8.2f} us {us / count * 1e3:8.0f} ns each"


def where(cores):
    return "all on one core" if cores == "one" else "cores of their own"


def lines_of_wall(found, cores):
    wall = found["ratio"]
    if wall is not None:
        yield f"  by wall time, {where(cores)}: x{wall['ratio']:.4f} [{wall['low']:.4f}, " \
            f"{wall['high']:.4f}] of hooks that pass over, {wall['pairs']} pairs, " \
            f"{measure.median(list(filter(None, found['pass_ms']))) * 1e3:.0f} us an iteration"


def answer_of(options, scratch):
    """The process of one case: its threads share a core from the start, or never."""
    model, live, _, cycles, _ = case = json.loads(options.case)
    if options.by == "torch":
        return under_torch(model, live, cycles)
    if options.by == "clock":
        return by_clock(Loop(*case), options.iterations, scratch)
    if options.by == "one":
        loop.share_core()
    return by_wall(Loop(*case), options.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build")
    parser.add_argument("--output", default=measure.HERE / "results", type=pathlib.Path)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=400, help="for all cases together")
    parser.add_argument("--cases", type=lambda text: [int(part) for part in text.split(",")],
                        default=list(range(len(CASES))), help="their numbers, 0,1,..., from "
                        + "; ".join(map(name_of, CASES)))
    parser.add_argument("--cores", choices=loop.CORES, action="append",
                        help="one of the two ways to place the threads")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--by", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.cores = options.cores or loop.CORES
    with tempfile.TemporaryDirectory() as scratch:
        if options.case:
            print(json.dumps(answer_of(options, scratch)))
            return 0
        folder = options.build or scratch
        return report(options, {meter: build(folder, meter) for meter in ("clock", "pass")})


def run(options, packages, case, by, seconds=0):
    """The answer of a fresh process, or why there is none; by the clock, or on which cores."""
    own = {} if by == "torch" else \
        {"PYTHONPATH": packages["clock" if by == "clock" else "pass"], **loop.cumem_environment()}
    environment = {**os.environ, "CUMEM_WARN_CYCLES": "", **own}
    done = subprocess.run(
        [sys.executable, __file__, "--case", json.dumps(case), "--by", by,
         "--iterations", str(options.iterations), "--seconds", str(seconds)],
        env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr[-300:]
    return json.loads(done.stdout.splitlines()[-1]), None


def name_of(case):
    return f"{case[0]}, {case[1]:,} live objects" \
        + (f", {case[2]:,} live tensors" if case[2] else "") \
        + (f", {case[3]} cycles" if case[3] else "") \
        + (" under observe_tensor_cycles" if case[4] else "")


def measure_case(options, packages, case, seconds):
    """(result, None) or (None, why): turns take what the other parts leave of `seconds`."""
    began = time.monotonic()
    result, why = run(options, packages, case, "clock")
    peer, no_peer = run(options, packages, case, "torch") if budget_of(case) else (None, None)
    took = time.monotonic() - began
    left = (seconds - took) / len(options.cores) - took / 2  # those processes start too
    walls = {}
    for cores in options.cores:
        walls[cores], failed = run(options, packages, case, cores, max(LEAST, left))
        why = why or failed
    if why or no_peer:
        return None, why or no_peer
    return {**result, "wall": walls, "torch": peer}, None


def budget_of(case):
    model, live, tensors, cycles, observed = case
    return ALLOWED.get((model, cycles, observed))


def instructions_of(case, folder):
    """What bench/instructions.py counted on a CPU for this loop, or None."""
    try:
        rows = json.loads((folder / "instructions-cpu.json").read_text())["rows"]
    except OSError:
        return None
    model, _, _, cycles, _ = case
    return next((row["ratio"] for row in rows if row["case"]["model"] == model
                 and row["case"]["cycles"] == cycles == 0), None)


def judge(output, case, result):
    """One row for each way to place the threads; without torch's detector it says nothing."""
    allowed, counted = budget_of(case), instructions_of(case, measure.HERE / "results")
    for cores, found in result["wall"].items():
        wall = found["ratio"]
        ratios = {"wall_ms": wall} | ({"instructions": {"ratio": counted}} if counted else {})
        said = f"{wall['ratio']:.4f}x, at most {wall['high']:.4f}x" \
            + (f"; instructions, CPU, {counted:.4f}x" if counted else "") \
            + f"; torch {result['torch']['ratio']:.0f}x"
        output.budget(f"{name_of(case)}, {where(cores)}", f"<= {allowed}x", said,
                      loop.holds(ratios, allowed))


def report(options, packages):
    output = measure.Output("hooks", __doc__.splitlines()[0], options)
    results, end = [], time.monotonic() + options.seconds
    for done, number in enumerate(options.cases):
        case, left = CASES[number], len(options.cases) - done
        result, why = measure_case(options, packages, case, (end - time.monotonic()) / left)
        output.case(case=name_of(case), result=result, failed=why)
        output.text(*(lines_of(name_of(case), result) if result
                      else [f"--- {name_of(case)}: failed: {why}"]))
        if result and budget_of(case):
            judge(output, case, result)
        results.append(result)
    output.write()
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
