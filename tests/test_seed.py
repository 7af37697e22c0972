# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The two leaks of the PyTorch blog's program (samples/seed says what else of
it differs), on CPU tensors of a small size: with collections, and without
any, where the scan at exit has to find them.  bench/gpu_seed.sh runs them at
their full size."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SEED = (pathlib.Path(__file__).resolve().parent.parent
        / "samples" / "seed" / "memory_leak.py")
TIMEOUT_S = 120

# The user's side: collects what every callback got, asks each for its parts.
DRIVER = """
import json, sys
sys.path.insert(0, {folder!r})
import gc
import memory_leak
from cumem import CycleReport, observe_tensor_cycles

calls = []

def callback(html):
    calls.append({{
        "is_str": isinstance(html, str), "is_report": type(html) is CycleReport,
        "html": str(html), "text": html.text, "report": html.report}})
    with open("calls.json", "w") as out:
        json.dump(calls, out)

gc.collect()
if not {interval!r}:
    gc.disable()
handle = observe_tensor_cycles(callback)
memory_leak.run({workload!r}, 4096, gc_interval={interval!r}, num_iter=12,
                device="cpu")
print("calls before exit:", len(calls))
"""

# Where the path starts; a long one is shortened behind it.
PATHS = {
    "simple": "Node .link ~~> Node .link > Node .tensor > ",
    "awaitable": ("AwaitableTensorWithViewCallBack ._callback > <lambda> > "
                  "cell self ~~> AwaitableTensorWithViewCallBack "
                  "._tensor_awaitable > "),
}
CUTS = {"simple": "a.link, b.link = b, a",
        "awaitable": "self._callback = lambda ret"}
BYTES = {"simple": 2 * 4096 * 4, "awaitable": 4096 * 4}


def environment(folder, **extra):
    keep = {name: value for name, value in os.environ.items()
            if not name.startswith("CUMEM_")}
    return {**keep, "TMPDIR": str(folder), **extra}


def run(arguments, folder):
    done = subprocess.run([sys.executable, *arguments], cwd=folder,
                          env=environment(folder), capture_output=True,
                          text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return done


def line_of(text):
    for number, line in enumerate(SEED.read_text().splitlines(), 1):
        if text in line:
            return number
    raise AssertionError(text)


@pytest.mark.parametrize("interval", [4, None])
@pytest.mark.parametrize("workload", ["simple", "awaitable"])
def test_callback_gets_the_cycle(workload, interval, tmp_path):
    code = DRIVER.format(folder=str(SEED.parent), workload=workload,
                         interval=interval)
    done = run(["-c", code], tmp_path)
    calls = json.loads((tmp_path / "calls.json").read_text())
    before_exit = int(done.stdout.rsplit(":", 1)[1])
    if interval is None:
        assert before_exit == 0 and len(calls) == 1
    else:
        # Iterations 0, 4 and 8 collect, but names still hold the newest
        # tensors, in iteration 0 all; what is left is found at exit.
        assert before_exit == 2 and len(calls) == 3
    for call in calls:
        check_call(call, workload)
    dead = [cycle["count"] for call in calls
            for cycle in call["report"]["cycles"]]
    # Of a callback that dies before its awaitable the tensor lives on: the
    # newest one in each collection holds nothing.
    spared = 3 if workload == "awaitable" and interval is not None else 0
    assert sum(dead) == 12 - spared


def check_call(call, workload):
    assert call["is_str"] and call["is_report"]
    (cycle,) = call["report"]["cycles"]
    assert cycle["bytes_each"] == BYTES[workload]
    assert cycle["trigger"] in ("gc", "exit")
    (path,) = (line for line in call["text"].splitlines()
               if line.startswith("   path  "))
    assert path[len("   path  "):].startswith(PATHS[workload])
    assert path.endswith("> Tensor [4096] float32")
    cut = f"   cut   memory_leak.py:{line_of(CUTS[workload])}  "
    assert cut + CUTS[workload] in call["text"]
    html = call["html"]
    assert html.lstrip().lower().startswith("<!doctype html")
    assert html.rstrip().lower().endswith("</html>")
    assert "memory_leak.py" in html
    assert CUTS[workload] in html


@pytest.mark.parametrize("interval", [[], ["--gc_collect_interval", "3"]])
@pytest.mark.parametrize("workload", ["simple", "awaitable"])
def test_program_as_it_stands(workload, interval, tmp_path):
    """Its own callback writes the pages and logs their names."""
    done = run([str(SEED), "--warn_tensor_cycles", "--workload", workload,
                "--device", "cpu", "--size", "4096", "--num_iter", "9",
                *interval], tmp_path)
    pages = sorted(tmp_path.glob("*.html"))
    assert pages
    for page in pages:
        assert str(page) in done.stderr
        assert CUTS[workload] in page.read_text()


def test_program_without_the_observer_writes_nothing(tmp_path):
    done = run([str(SEED), "--device", "cpu", "--size", "4096",
                "--num_iter", "9"], tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert "Reference cycle" not in done.stderr
