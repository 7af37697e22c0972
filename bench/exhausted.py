# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What is told when a GPU's memory runs out: each program until torch's own OutOfMemoryError.

    python bench/exhausted.py [--output FILE]

Nobody asks for the report: CUMEM_WARN_CYCLES=1 alone.  A loop that keeps its losses,
tables that grow with nothing dead, one request that is too large, dead cycles with automatic
collection off, and a loop that catches the error and goes on with a smaller batch.  Checked:
the error reaches the program as it is, the report stands on the disk at that moment, it says
at which iteration, how much was asked for, who holds most, and what a collection would free.
Needs a GPU; exit status 1 when something else is told.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import measure

START = """
import gc, json, os, pathlib, sys
""" + measure.STARTED + """\
import torch
MIB = 1 << 20
total = torch.cuda.get_device_properties(0).total_memory
step = total // 100 // MIB * MIB // 4  # floats: an iteration takes a hundredth of the device
"""

LOSSES = START + """
weight = torch.ones(step, device="cuda", requires_grad=True)
def main():
    losses = []
    while True:
        losses.append((weight * 2).exp().sum())
        cumem.step()
main()
"""
TABLES = START + """
class Index:
    def __init__(self):
        self.tables = {}
    def add(self, key):
        self.tables[key] = torch.zeros(step, device="cuda")
def main():
    index = Index()
    for key in range(1000):
        index.add(key)
        cumem.step()
main()
"""
REQUEST = START + """
def main():
    weights = [torch.zeros(step, device="cuda") for _ in range(30)]
    torch.empty(total, device="cuda")
main()
"""
CYCLES = START + """
class Node:
    pass
def main():
    gc.disable()
    while True:
        a, b = Node(), Node()
        a.other, b.other = b, a
        a.data = torch.zeros(step, device="cuda")
        cumem.step()
main()
"""
CAUGHT = START + """
def main():
    batch, caught, cache = total, 0, torch.zeros(step, device="cuda")
    for _ in range(5):
        try:
            torch.empty(batch, dtype=torch.int8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            caught += 1
            batch = total // 10
        cumem.step()
    reports = list(pathlib.Path().glob("leak*.json"))
    assert caught == 1 and len(reports) == 1, (caught, reports)
    print("caught", caught)
main()
"""


def run(source, folder):
    """(exit status, standard error, the report) of a program of its own."""
    program = folder / "train.py"
    program.write_text(source)
    done = subprocess.run([sys.executable, program], cwd=folder, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "CUMEM_WARN_CYCLES": "1"})
    found = list(folder.glob("leak*.json"))
    return done.returncode, done.stderr, json.loads(found[0].read_text()) if len(found) == 1 else None


def ended_so(code, stderr):
    if code != 1 or "OutOfMemoryError: CUDA out of memory" not in stderr:
        yield f"exit status {code}; the program's error is not torch's own"


def exhausted(report, asked, way, share):
    """The report says how much was asked for, and who holds at least that share of the device."""
    told = report.get("exhausted") or {}
    if told.get("asked_bytes", 0) < asked:
        yield f"asked for: {told.get('asked_bytes')}"
    holders = told.get("holders") or [{"way": "", "bytes": 0}]
    if way not in holders[0]["way"] or holders[0]["bytes"] < share:
        yield f"holders: {holders}"


def grows(report, line):
    """The growth so far is in it, held as the program holds it."""
    for row in report["growth"]:
        if row["verdict"] == "leak" and any(line in step["edge"] for step in row["holder"]):
            return
    yield f"growth: {[(row['verdict'], row['holder']) for row in report['growth']]}"


def dead(report, count):
    cycles = report["cycles"]
    if not cycles or cycles[0]["trigger"] != "oom" or cycles[0]["count"] < count:
        yield f"cycles: {[(row['trigger'], row['count']) for row in cycles]}"


GIB = 1 << 30
CASES = {
    "losses kept": (LOSSES, lambda code, err, report: [
        *ended_so(code, err), *exhausted(report, 1 << 20, "losses", 8 * GIB), *grows(report, "losses")]),
    "tables that grow": (TABLES, lambda code, err, report: [
        *ended_so(code, err), *exhausted(report, 1 << 20, "tables", 8 * GIB), *grows(report, "tables")]),
    "one large request": (REQUEST, lambda code, err, report: [
        *ended_so(code, err), *exhausted(report, 8 * GIB, "weights", 8 * GIB)]),
    "dead cycles, collection off": (CYCLES, lambda code, err, report: [
        *ended_so(code, err), *dead(report, 50)]),
    "caught": (CAUGHT, lambda code, err, report: [
        *([] if code == 0 else [f"exit status {code}"]), *exhausted(report, 8 * GIB, "cache", 1 << 20)]),
}


def told(stderr):
    return [line for line in stderr.splitlines() if line.startswith(("cumem", "#", "   ", "cyclereport"))]


def judge(name, source, check):
    with tempfile.TemporaryDirectory() as folder:
        code, stderr, report = run(source, pathlib.Path(folder))
        if report is None:
            return ["no report"], stderr.splitlines()[-20:]
        return check(code, stderr, report), told(stderr.replace(f"{folder}/", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a copy of what is printed")
    options = parser.parse_args()
    lines, failed = measure.head(measure.machine()), 0
    for name, (source, check) in CASES.items():
        wrong, shown = judge(name, source, check)
        failed += bool(wrong)
        lines += ["", f"--- {name}: " + ("FAIL: " + "; ".join(wrong) if wrong else "PASS"), *shown]
    print("\n".join(lines))
    if options.output:
        pathlib.Path(options.output).write_text("\n".join(lines) + "\n")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
