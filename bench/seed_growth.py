# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The seeds' ResNet-50: are the verdicts those that its authors found by hand?

    python bench/seed_growth.py [--device cpu] [--output FILE]

samples/seed/resnet50.py with 5 iterations, as the blog has it, and with 30:
gradients not cleared, cleared, and cleared under torch.profiler.  What must be
told: the gradients as lingering where nobody clears them, with
`zero_grad(set_to_none=True)` as advice; nothing where they are cleared; the
memory that came with the first `step()` as optimizer state, in no finding.
Needs torchvision; exit status 1 when a verdict is another one.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "samples" / "seed" / "resnet50.py"
CASES = {"not cleared": [], "cleared": ["--clear"],
         "cleared, profiled": ["--workload", "profiler"]}

# Asks for the report at the last step, while the model lives, as `kill -USR2` does.
CHILD = """
import os, runpy, signal, sys, time
""" + measure.STARTED + """\
from torch.optim.optimizer import register_optimizer_step_post_hook
last = int(sys.argv[1])
steps = []
def after_step(optimizer, args, kwargs):
    steps.append(1)
    if len(steps) == last:
        os.kill(os.getpid(), signal.SIGUSR2)
        limit = time.monotonic() + 20
        while not cumem.status()["signal"]["answered"] and time.monotonic() < limit:
            pass
register_optimizer_step_post_hook(after_step)
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(arguments, iterations, device, folder):
    """(report, what was warned)."""
    written = folder / "leak.json"
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(iterations), str(PROGRAM),
         "--device", device, "--num_iters", str(iterations), *arguments],
        env={**os.environ, "CUMEM_WARN_CYCLES": "1", "CUMEM_DEVICES": device,
             "CUMEM_SIGNAL": "USR2", "CUMEM_OUTPUT": str(written)},
        cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"{PROGRAM.name} {arguments}: exit status {done.returncode}\n"
                         + done.stderr[-2000:])
    return json.loads(written.read_text()), done.stderr.replace(f"{folder}/", "")


def told(stderr):
    """The lines of cumem's own warnings."""
    return [line for line in stderr.splitlines()
            if line.startswith(("cumem", "#", "   ")) and "schedule=" not in line]


def series_of(report, category):
    """Bytes of one category at each iteration, of the only device that has some."""
    found = []
    for device in report["timeline"]["devices"]:
        place = device["categories"].index(category)
        points = [point[2 + place] for point in device["points"]]
        found = points if any(points) else found
    return found


def is_as_large(bytes_, parameters):
    """Blocks above 1 MiB may be up to 1 MiB longer than what was asked for."""
    return 0.97 * parameters <= bytes_ <= 1.06 * parameters


def problems(name, report):
    findings = [row for row in report["growth"] if row["verdict"] in ("leak", "lingering")]
    parameters = series_of(report, "parameter")[-1]
    state = series_of(report, "optimizer state")
    if not is_as_large(state[0], parameters) or state[0] != state[-1]:
        yield f"optimizer state is {state[0]} to {state[-1]}, parameters {parameters}"
    if name != "not cleared":
        if findings:
            yield f"told {len(findings)} findings of a healthy program"
        return
    if [(row["verdict"], row["category"]) for row in findings] != [("lingering", "gradient")]:
        yield "gradients are not the only finding"
    for row in findings:
        if not is_as_large(row["bytes"], parameters):
            yield f"{row['bytes']} bytes of gradients, {parameters} of parameters"
        if "zero_grad(set_to_none=True)" not in row["advice"]:
            yield "advice: " + row["advice"]


def describe(report):
    mib = 1 << 20
    for category in ("parameter", "gradient", "optimizer state", "saved for backward"):
        points = series_of(report, category)
        if points:
            yield f"  {category:20}" + " ".join(f"{bytes_ / mib:8.1f}" for bytes_ in points[:8]) \
                + (" ..." if len(points) > 8 else "") + " MiB at the end of each iteration"
    for row in report["growth"]:
        yield (f"  {row['verdict']}, {row['category']}: {row['bytes'] / mib:.1f} MiB, "
               f"{row['bytes_per_iteration']} B an iteration; {row['advice']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--output", help="a copy of what is printed")
    options = parser.parse_args()
    lines = measure.head(measure.machine())
    failed = 0
    for name, arguments in CASES.items():
        for iterations in (5, 30):
            with tempfile.TemporaryDirectory() as folder:
                report, stderr = run(arguments, iterations, options.device,
                                     pathlib.Path(folder))
            wrong = list(problems(name, report))
            failed += bool(wrong)
            lines += ["", f"--- {name}, {iterations} iterations: "
                      + ("FAIL: " + "; ".join(wrong) if wrong else "PASS"),
                      *describe(report), *told(stderr)]
    print("\n".join(lines))
    if options.output:
        pathlib.Path(options.output).write_text("\n".join(lines) + "\n")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
