# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Programs that use frameworks of arrays, each in a process of its own."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

MIB = 1 << 20

PROLOGUE = """
import gc, json, sys, types, weakref
import cumem

class Node:
    pass

made = []

def cycle(held):
    # Of a class of its own each time, so that none are folded into one.
    made.append(1)
    node = type(f"Node{len(made)}", (Node,), {})()
    node.held = held
    node.me = node

def module(name, **content):
    made = types.ModuleType(name)
    vars(made).update(content)
    sys.modules[name] = made

def summary(report):
    report = report.report
    rows = {}
    names = {vertex["id"]: vertex["annotation"] for vertex in report["vertices"]}
    for storage in report["storages"]:
        for vertex in storage["vertices"]:
            rows[names[vertex]] = (storage["device"], storage["bytes"],
                                   bool(storage["site"]))
    return {"rows": sorted([name, *row] for name, row in rows.items()),
            "total": sum(cycle["total_bytes"] for cycle in report["cycles"])}

reports = []
handle = cumem.observe_tensor_cycles(reports.append)

def start():
    gc.collect()
    gc.disable() # JAX makes enough objects for a collection
    reports.clear()

def finish(**extra):
    scan = summary(cumem.find_cycles())
    gc.collect()
    found = [summary(report) for report in reports]
    frameworks = cumem.status()["frameworks"]
    handle.remove()
    print(json.dumps({"scan": scan, "collections": found, "frameworks": frameworks,
                      **{name: value() if callable(value) else value
                         for name, value in extra.items()}}))
"""


def run(code, *, folder=None, **extra):
    """The last line of its output, as JSON."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("CUMEM_")}
    path = [str(folder), environment.get("PYTHONPATH", "")] if folder else []
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    done = subprocess.run([sys.executable, "-c", code], text=True, timeout=120,
                          capture_output=True, env={**environment, **extra})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1])


def run_jax(code, **extra):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    return run(PROLOGUE + "import jax, jax.numpy as jnp\n" + code, JAX_PLATFORMS="cpu", **extra)


def expect(result, rows, total):
    """A scan and a collection say the same."""
    assert result["scan"] == {"rows": sorted(rows), "total": total}
    assert result["collections"] == [result["scan"]]


def expect_nothing(result):
    assert result["scan"] == {"rows": [], "total": 0}
    assert result["collections"] == []
