# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""User instructions of the training loop, counted by valgrind.

    python bench/instructions.py [--cases COUNT] [--output FOLDER]

For machines without a hardware counter: noise hides 1 % of a time, but the
same program executes the same instructions.  Each process is counted for nine
blocks of five iterations, between two doublings of their number: at those cumem
looks who holds what grows, whose part of the whole goes to nothing.  Before each
block some lists are made that stay: as many calls of Python's allocator take up
to 0.2 % of the loop more or less by which of its pools are full, and copies by their
addresses, with a tool or without.  All blocks count alike, since what comes every
tenth iteration is in few of them.  What lies in cumem's own code is told, and what
Python itself takes more.  cumem's threads count too.  No full collection falls into
a block.  Slow: an iteration of the MLP takes 3 s, since valgrind calls a function
for each fused multiply and add.
"""

import argparse
import concurrent.futures
import ctypes
import gc
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import loop
import measure

MORE, BLOCK, BLOCKS = 10, 5, 9  # iterations to warm up further, iterations, blocks
SPARE = 150  # lists more before each block, which only full collections visit again
BUDGET = 1.005
CASES = [{"model": model, "live": live, "cycles": cycles}
         for model, live, cycles in (("mlp", 1000, 0), ("transformer", 1000, 0), ("mlp", 1000, 4))]
PARTS = {"own": lambda name: "cumem/_core" in name,
         "python": lambda name: pathlib.Path(name).name.startswith(("python", "libpython"))}
SOURCE = """#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void dump(void) { CALLGRIND_DUMP_STATS; }
"""


def switch(folder):
    """start() and dump() of the valgrind that this process runs under."""
    source, library = pathlib.Path(folder) / "switch.c", pathlib.Path(folder) / "switch.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def worker(spec):
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, 1_000_000)
    _, live, step = loop.begin({**spec, "device": "cpu", "cores": "one"})
    for _ in range(MORE):
        step()
    valgrind, spare = ctypes.CDLL(spec["switch"]), []
    for _ in range(BLOCKS):
        spare.append([[i] for i in range(SPARE)])
        gc.collect(1)
        step()
        valgrind.start()
        for _ in range(BLOCK):
            step()
        valgrind.dump()
    os._exit(len(live) != spec["live"])  # without what only an exit does


def instructions_of(dump):
    """{object file: instructions in its own code}."""
    names, counts, name, call = {}, {}, None, False
    for line in dump.splitlines():
        if line.startswith(("ob=", "cob=")):
            called, number, known = re.match(r"(c?)ob=\((\d+)\)\s*(.*)", line).groups()
            names.setdefault(number, known)
            name = name if called else names[number]
        elif line[:1].isdigit() or line.startswith(("+", "-", "*")):
            if not call:  # the line after a call has what it took inside
                counts[name] = counts.get(name, 0) + int(line.split()[-1])
            call = False
        call = line.startswith("calls=") or call
    return counts


def count(spec):
    """Instructions an iteration of each block: all, and those of the PARTS."""
    environment = measure.environment(PYTHONHASHSEED="0", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")
    if spec["tool"] == "warn":
        environment.update(loop.cumem_environment())
    with tempfile.TemporaryDirectory() as folder:
        spec = {**spec, "switch": str(switch(folder))}
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no",
             f"--callgrind-out-file={folder}/out", sys.executable, __file__,
             "--worker", json.dumps(spec)],
            env=environment, capture_output=True, text=True)
        blocks = [instructions_of(path.read_text()) for path in
                  sorted(pathlib.Path(folder).glob("out.*"), key=lambda path: path.suffix)]
    blocks = [block for block in blocks if sum(block.values())]
    if done.returncode != 0 or len(blocks) != BLOCKS:
        raise measure.Failed(f"{len(blocks)} blocks of {BLOCKS}; {done.stderr[-2000:]}")
    return {"blocks": [sum(block.values()) / BLOCK for block in blocks],
            **{part: [sum(number for name, number in block.items() if is_part(name)) / BLOCK
                      for block in blocks]
               for part, is_part in PARTS.items()}}


def compare(case):
    """A row: both tools, side by side."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return row_of(case, *pool.map(count, [{**case, "tool": tool} for tool in ("none", "warn")]))


def row_of(case, none, warn):
    """A row from the blocks of both tools."""
    base, all_in = ({part: statistics.fmean(blocks) for part, blocks in tool.items()}
                    for tool in (none, warn))
    return {"case": case, "blocks": {"none": none, "warn": warn},
            "none": base["blocks"], "warn": all_in["blocks"], "own": all_in["own"],
            "python": all_in["python"] - base["python"],
            "ratio": all_in["blocks"] / base["blocks"]}


def line_of(row):
    case = row["case"]
    return f"{case['model']} live {case['live']:,} cycles {case['cycles']}".ljust(32) \
        + f"{row['none']:14,.0f}{row['warn']:14,.0f}{row['ratio']:9.4f}" \
        f"{row['own']:12,.0f}{row['own'] / row['none']:8.2%}" \
        f"{row['python']:+12,.0f}" \
        f"   {'held' if row['ratio'] <= BUDGET else 'MISSED'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=measure.HERE / "results", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--worker", type=json.loads)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    rows, lines = [], [f"{'case':32}{'none':>14}{'cumem':>14}{'ratio':>9}{'own code':>12}"
                       f"{'share':>8}{'python':>12}   <= {BUDGET}"]
    print(lines[0])
    for case in CASES[:options.cases]:
        rows.append(compare(case))
        lines.append(line_of(rows[-1]))
        print(lines[-1], flush=True)
    machine = measure.machine()
    document = {"command": " ".join(["python bench/instructions.py", *sys.argv[1:]]),
                "machine": machine, "rows": rows}
    options.output.mkdir(parents=True, exist_ok=True)
    stem = options.output / f"instructions-{machine['kind']}"
    stem.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    stem.with_suffix(".txt").write_text(
        "User instructions an iteration, counted by valgrind (callgrind).\n"
        f"{machine['cpu']}, Python {machine['python']}, torch {machine['torch']}\n\n"
        + "\n".join(lines) + "\n")
    return 0 if all(row["ratio"] <= BUDGET for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
