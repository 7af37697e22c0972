# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Case a of allocations.py: what one free and one allocation cost, without a GPU.

The stand-ins of the tests are compiled: a libc10_cuda that reports as the real
one does, so that slot, stack and table are those of a job.  The same with no
hook, turn by turn in the same process, is taken off.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import types

import children
import measure

ROOT = measure.HERE.parent
BASE = 0x7F0000000000
ALLOWED_NS = {10_000: 100, 100_000: 200}
ALLOWED_RATE = 10e6
DEEP = 30
THREADS = 4


# -- built here -------------------------------------------------------------

def build_stand_ins(folder):
    """As torch's own two lie beside each other."""
    for name, source, more in (("libc10.so", "fake_c10.c", []),
                               ("libc10_cuda.so", "fake_c10_cuda.c", ["-lc10"])):
        subprocess.run(
            ["cc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread",
             f"-Wl,-soname,{name}", str(ROOT / "tests" / source),
             "-o", os.path.join(folder, name), f"-L{folder}",
             "-Wl,-rpath,$ORIGIN", *more], check=True)
    return os.path.join(folder, "libc10_cuda.so")


def build_table(folder):
    """bench/blocks.c with detector/, as the product compiles it."""
    program = os.path.join(folder, "blocks")
    sources = map(str, sorted((ROOT / "detector").glob("*.c")))
    subprocess.run(["cc", "-std=gnu11", "-O2", "-DNDEBUG", "-pthread",
                    str(measure.HERE / "blocks.c"), *sources, "-o", program,
                    "-lm"], check=True)
    return program


# -- the child --------------------------------------------------------------

def _deep(frames, function):
    """Call it with that many frames below it."""
    return function() if frames <= 0 else _deep(frames - 1, function)


def _depth():
    frame, depth = sys._getframe(1), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def _load(path):
    fake = ctypes.CDLL(path)  # as torch's own calls: without the GIL
    fake.fake_pairs.argtypes = (ctypes.c_int, *[ctypes.c_uint64] * 3)
    return fake


def pairs(spec):
    """{live: {"on": [ns, ...], "off": [ns, ...]}} for one free and one allocation."""
    import gc

    import cumem

    # Without torch, whose own libc10_cuda would be heard instead.
    sys.modules["torch._C"] = types.ModuleType("torch._C")
    fake = _load(spec["stand_in"])
    gc.disable()

    def timed(live, count):
        def run():
            start = time.perf_counter_ns()
            fake.fake_pairs(0, BASE, live, count)
            return (time.perf_counter_ns() - start) / count

        return _deep(DEEP - _depth() - 1, run)

    result, told, end = {}, 0, time.monotonic() + spec["seconds"]
    for position, live in enumerate(spec["live"]):
        count = max(20_000, live)
        samples = {"on": [], "off": []}
        left = len(spec["live"]) - position
        until = time.monotonic() + max(1.0, end - time.monotonic()) / left
        while len(samples["on"]) < 3 or time.monotonic() < until:
            handle = cumem.observe_tensor_cycles(print)
            timed(live, live)  # every block is known, every cache as in a loop
            samples["on"] += [timed(live, count) for _ in range(3)]
            told += 2 * (live + 3 * count)
            hook = cumem.status()["allocator_hook"]
            handle.remove()
            timed(live, live)
            samples["off"] += [timed(live, count) for _ in range(3)]
        result[live] = {**samples, "hook": hook}
    return {"pairs": result, "told": told}


# -- the parent -------------------------------------------------------------

def run(options, output, checks, seconds):
    live = [1_000, 10_000] if options.quick else [1_000, 10_000, 100_000]
    share = seconds / (3 if options.quick else 2.5)
    with tempfile.TemporaryDirectory(prefix="cumem-bench-") as folder:
        with checks.part("a: the table alone"):
            _run_table(build_table(folder), options, output, checks)
        stand_in = build_stand_ins(folder)
        for name, stacks in ((f"{DEEP} frames deep", {}),
                             ("without stacks", {"CUMEM_STACKS": "0"})):
            answer = children.call(
                "allocations_pairs.py", "pairs",
                {"stand_in": stand_in, "live": live, "seconds": share},
                share * 3 + 60, **stacks)
            output.case(case="a", what=name, **answer)
            if "failed" in answer:
                checks.expect(f"a: pairs, {name}", "an answer", answer["failed"], False)
                output.text(answer["said"])
            else:
                _judge_pairs(answer, name, bool(stacks), output, checks)


def _judge_pairs(answer, name, stackless, output, checks):
    rows = []
    for live, samples in answer["pairs"].items():
        live = int(live)
        on, off = samples["on"], samples["off"]
        median = measure.median(on) - measure.median(off)
        best = min(on) - min(off)
        rows.append([f"{live:,}", *(measure.number(value, 1) for value in (
            measure.median(off), min(off), measure.median(on), min(on), median, best)),
            len(on)])
        if live in ALLOWED_NS:
            allowed = ALLOWED_NS[live]
            checks.expect(f"a: free + allocation, {name}, {live:,} live blocks",
                          f"<= {allowed} ns", f"{median:.0f} ns (best {best:.0f})",
                          median <= allowed)
    hook = list(answer["pairs"].values())[-1]["hook"]
    checks.expect(f"a: events told, {name}", f"{answer['told']:,}, none lost",
                  f"{hook['events']:,}, lost {hook['lost']}, "
                  f"mismatches {hook['mismatches']}",
                  hook["events"] == answer["told"]
                  and hook["lost"] == hook["mismatches"] == 0)
    what = "no stacks (CUMEM_STACKS=0)" if stackless else f"stacks of {DEEP} frames"
    output.text("", f"a: ns for one free and one allocation, {what}; peers: case d",
                measure.table(["live blocks", "no hook", "best", "cumem", "best",
                               "added", "best", "turns"], rows))


def _run_table(program, options, output, checks):
    turns = 3 if options.quick else 9
    events = 4_000_000 if options.quick else 10_000_000
    core = min(os.sched_getaffinity(0))

    def rate(cores):
        done = subprocess.run(
            [program, "rate", str(THREADS), "2500", str(events // THREADS)],
            check=True, capture_output=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores))
        return json.loads(done.stdout)

    rates = {"one core": [rate({core}) for _ in range(turns)],
             "all cores": [rate(os.sched_getaffinity(0)) for _ in range(turns)]}
    speeds = {where: [one["events"] / one["seconds"] for one in found]
              for where, found in rates.items()}
    sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    done = subprocess.run([program, "bytes", *map(str, sizes)], check=True,
                          capture_output=True)
    footprint = {int(live): size for live, size in json.loads(done.stdout).items()}
    output.case(case="a", what="the table alone", rates=rates, footprint=footprint)
    medians = {where: measure.median(found) for where, found in speeds.items()}
    checks.expect(f"a: {THREADS} threads on one core, table alone",
                  f">= {ALLOWED_RATE / 1e6:.0f}M events/s",
                  f"{medians['one core'] / 1e6:.1f}M (worst "
                  f"{min(speeds['one core']) / 1e6:.1f}M)",
                  medians["one core"] >= ALLOWED_RATE)
    lost = sum(one["lost"] + one["unknown"] for found in rates.values() for one in found)
    checks.expect("a: events lost by the table", 0, lost, lost == 0)
    output.text("", f"a: the table alone, {THREADS} threads: " + "; ".join(
        f"{where} {value / 1e6:.1f}M events/s" for where, value in medians.items()))
    worst = max(size / live for live, size in footprint.items())
    checks.expect("a: native bytes for a live block", "<= 64", f"{worst:.1f}", worst <= 64)
    output.text("", measure.table(
        ["live blocks", "native bytes", "for each"],
        [[f"{live:,}", f"{size:,}", f"{size / live:.1f}"]
         for live, size in footprint.items()]))


if __name__ == "__main__":
    children.answer({"pairs": pairs})
