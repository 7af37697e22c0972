# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""User instructions of the training loop, counted by valgrind.

For machines without a hardware counter: noise hides 1 % of a time, but the
same program executes the same instructions.  Each mode runs twice, for few and
for many iterations; what lies between is the loop's own.  The native thread
counts too.  No full collection falls into it, but younger ones do: one in some
hundred iterations takes 20 M instructions, 2 % of what is counted here.  Slow:
some minutes for a case.
"""

import argparse
import gc
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import loop
import measure

FEW, MANY = 10, 50
BUDGET = 1.005
CASES = [{"model": model, "live": live, "cycles": cycles}
         for model, live, cycles in (("mlp", 1000, 0), ("mlp", 1000, 4), ("transformer", 1000, 0))]


def worker(spec):
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, 1_000_000)
    _, handle = loop.make(spec, measure.Counter())
    handle(iterations=spec["iterations"])
    os._exit(0)  # without what only an exit does


def count(spec):
    """Instructions of a whole process."""
    environment = measure.environment(PYTHONHASHSEED="0", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")
    if spec["tool"] == "warn":
        environment.update(loop.cumem_environment())
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=no",
             f"--cachegrind-out-file={folder}/out", sys.executable, __file__,
             "--worker", json.dumps(spec)],
            env=environment, capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if found is None:
        raise measure.Failed(done.stderr[-2000:])
    return int(found.group(1).replace(",", ""))


def per_iteration(case, tool):
    few, many = (count({**case, "tool": tool, "device": "cpu", "iterations": n})
                 for n in (FEW, MANY))
    return {"few": few, "many": many, "iteration": (many - few) / (MANY - FEW)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=measure.HERE / "results", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--worker", type=json.loads)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    rows, lines = [], [f"{'case':32}{'none':>14}{'cumem':>14}{'ratio':>9}   <= {BUDGET}"]
    for case in CASES[:options.cases]:
        row = {"case": case, **{tool: per_iteration(case, tool) for tool in ("none", "warn")}}
        row["ratio"] = row["warn"]["iteration"] / row["none"]["iteration"]
        rows.append(row)
        lines.append(f"{case['model']} live {case['live']:,} cycles {case['cycles']:<8}".ljust(32)
                     + f"{row['none']['iteration']:14,.0f}{row['warn']['iteration']:14,.0f}"
                     f"{row['ratio']:9.4f}   {'held' if row['ratio'] <= BUDGET else 'MISSED'}")
        print(lines[-1], flush=True)
    machine = measure.machine()
    document = {"command": " ".join(["python bench/instructions.py", *sys.argv[1:]]),
                "machine": machine, "rows": rows}
    options.output.mkdir(parents=True, exist_ok=True)
    stem = options.output / f"instructions-{machine['kind']}"
    stem.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    stem.with_suffix(".txt").write_text(
        "User instructions an iteration, counted by valgrind (cachegrind --cache-sim=no).\n"
        f"{machine['cpu']}, Python {machine['python']}, torch {machine['torch']}\n\n"
        + "\n".join(lines) + "\n")
    return 0 if all(row["ratio"] <= BUDGET for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
