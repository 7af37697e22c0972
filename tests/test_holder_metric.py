# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A metric of torchmetrics that nobody resets is a leak at once; one that somebody may reset, or that
each epoch has anew, is not.  All code of a process is read, so each case is a program of its own."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

METRICS = """
import torch

class Metric(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.preds = []

    def add_state(self, name, default):
        setattr(self, name, default)

    def reset(self):
        for name in ("preds",):
            getattr(self, name).clear()

class AUROC(Metric):
    def update(self, preds):
        self.preds.append(preds)

def reset_all(metrics):
    for metric in metrics:
        metric.reset()
"""
OTHER = "def end(metric):\n    metric.reset()\n"

PROGRAM = """
import sys
sys.path.insert(0, {packages!r})
import torch, cumem
from torchmetrics import AUROC, Metric
{more}
model = torch.nn.Linear(64, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def steps(auroc):
    for turn in range(40):
        out = model(torch.ones(64, 64))
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        yield out.detach()

class Own(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("values", [])

    def update(self, out):
        self.values.append(out)

class Other(Metric):
    def __init__(self):
        super().__init__()
        self.kept = []

    def update(self, out):
        self.kept.append(out)

def derived(auroc):
    for turn, out in enumerate(steps(auroc)):
        auroc.update(out)
        show(turn)

class Trainer:
    def __init__(self):
        self.auroc = AUROC()

    def step(self, out):
        self.auroc.update(out)

    def fit(self):
        for epoch in range(1):
            for turn, out in enumerate(steps(None)):
                self.step(out)
                show(turn)

def train():
    auroc = AUROC()
    for epoch in range(1):
        for turn, out in enumerate(steps(auroc)):
            auroc.update(out)
            show(turn)

def once():
    auroc = AUROC()
    for turn, out in enumerate(steps(auroc)):
        auroc.update(out)
        show(turn)

def epochs():
    for epoch in range(1):
        auroc = AUROC()
        for turn, out in enumerate(steps(auroc)):
            auroc.update(out)
            show(turn)

def trains():
    for epoch in range(1):
        train()

def show(turn):
    if turn == 35:
        for row in cumem.growth():
            if row["category"] != "gradient":
                print(row["verdict"], row["advice"])

with cumem.observe_tensor_cycles(lambda page: None):
    {run}
"""

# What runs, what else the program has, a package that says reset: its verdict.
CASES = {
    "local": ("train()", "", None, "leak"),
    "attribute": ("Trainer().fit()", "", None, "leak"),
    "a single pass": ("once()", "", None, "growing"),
    "said": ("train()", "def later(auroc): auroc.reset()", None, "growing"),
    "by lightning": ("train()", "", "lightning", "growing"),
    "of its own": ("train()", "", "transformers", "leak"),
    "each epoch": ("epochs()", "", None, "growing"),
    "each call": ("trains()", "", None, "growing"),
    "derived": ("derived(auroc=Own())", "def later(auroc): auroc.reset()", None, "growing"),
    "no state of it": ("derived(auroc=Other())", "def later(auroc): auroc.reset()", None, "leak"),
}


def packages_at(tmp_path, other):
    packages = tmp_path / "site-packages"
    for name, text in {"torchmetrics": METRICS, other: OTHER}.items():
        if name is not None:
            (packages / name).mkdir(parents=True)
            (packages / name / "__init__.py").write_text(text)
    return packages


@pytest.mark.parametrize("case", CASES)
def test_who_resets_it(case, tmp_path):
    run, more, other, verdict = CASES[case]
    packages = packages_at(tmp_path, other)
    if other is not None:
        more = f"import {other}"
    program = PROGRAM.format(packages=str(packages), more=more, run=run)
    script = tmp_path / "program.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=180,
                          cwd=tmp_path, env=os.environ)  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert [row.split()[0] for row in rows] == [verdict], rows
    assert ("auroc.reset() at the end of each epoch" in rows[0]) == (case != "no state of it")
