# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Items of a list that keep a tensor each: a leak where the list gets more of them, however seldom."""

import re

import pytest
from process import NODES, run_ok

PROGRAM = NODES + """
import collections, functools

def made():
    return torch.ones(64, 256).tanh()

class Lazy:
    @functools.cached_property
    def x(self):
        return made()

class Client:
    def __init__(self):
        self.all = []
    def update(self):
        self.last = made()
        self.all.append(self.last)

class Probe:
    def __init__(self, born=0):
        self.kept, self.born = [], born
    def see(self):
        self.kept.append(made())
    def snapshot(self):
        kept = self.kept
        self.kept = []
        return kept

class Track(Probe):
    def __init__(self, born=0):
        self.kept, self.born = collections.deque(maxlen=2), born

model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
told = []

def run(turns, old, look, add):
    rows = [kinds.get(add, Lazy)() for _ in range(old)]
    with cumem.observe_tensor_cycles(lambda page: None):
        for turn in range(turns):
            model(torch.ones(4, 16)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            add(rows, turn)
            if turn in look:
                told.append({row["frames"][0]["line"]: row["verdict"] for row in cumem.growth()})

def new(rows, turn):
    rows.append(Lazy())
    rows[-1].x

def new_now_and_then(rows, turn):
    if turn % 3 == 0:
        new(rows, turn)

def each(rows, turn):
    rows[turn].x

def update(rows, turn):
    rows[turn].update()

def seen(row):
    for _ in range(2):
        row.see()
    return row

def probe(rows, turn):
    rows.append(seen(Probe()))
    seen(Probe()).snapshot()

def track(rows, turn):
    rows.append(seen(Track()))

def probe_each(rows, turn):
    rows[turn % len(rows)].see()
    seen(Probe()).snapshot()

class Tracks:
    def __init__(self):
        self.all = []
    def step(self, rows, turn):
        self.all.append(seen(Track(turn)))
        for one in list(self.all):
            if one.born + 50 <= turn:
                self.all.remove(one)

track_for_a_time = Tracks().step
kinds = {update: Client, probe_each: Probe}
"""
LINE = 1 + PROGRAM[:PROGRAM.index("torch.ones(64")].count("\n")


@pytest.mark.parametrize("run, wanted", [
    ("40, 0, {39}, new", ["leak"]),  # one look, and each has it already
    ("40, 50, {38, 39}, new", ["growing", "leak"]),  # the first of two does not know yet
    ("90, 50, range(60, 90), new_now_and_then", None),
    ("40, 90, {20, 30, 39}, update", ["leak"] * 3),  # each keeps all that it had, too
    ("40, 90, {20, 30, 39}, each", ["growing"] * 3),
    # What bounds each of them bounds not all, which two looks know.
    ("40, 0, {15, 39}, probe", ["growing", "leak"]),
    ("40, 0, {15, 39}, track", ["growing", "leak"]),
    ("40, 9, {15, 25, 39}, probe_each", ["growing"] * 3),
    ("40, 0, {15, 25, 39}, track_for_a_time", ["growing"] * 3)])
def test_whether_items_get_more(run, wanted, tmp_path):
    run_ok(PROGRAM + f"run({run})\n" + f"found = [verdicts.get({LINE}) for verdicts in told]\n"
           + (f"assert found == {wanted}, found" if wanted else
              "assert found[0] == 'growing' and set(found[4:]) == {'leak'}, found"), cwd=tmp_path)


def test_a_window_of_the_loop_is_trusted_for_as_long_as_one_lasts(tmp_path):
    """That it takes nothing out is not to be read: `done` is never set."""
    done = run_ok("""
import torch
def main():
    model = torch.nn.Linear(128, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    waiting = []
    for step in range(300):
        loss = model(torch.randn(128, 128)).pow(2).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        waiting.append({"done": False, "rows": torch.zeros(1 << 14)})
        for each in list(waiting):
            if each["done"]:
                waiting.remove(each)
main()
""", cwd=tmp_path, CUMEM_WARN_CYCLES=1, OMP_NUM_THREADS=1)
    assert re.search(r"local `waiting` \(list, 2[56]\d items\)", done.err), done.err
