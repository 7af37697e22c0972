# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the benches make of what they measured; nothing is measured here."""

import importlib
import json
import pathlib
import re
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
README = BENCH.parent / "README.md"


@pytest.fixture(scope="module", autouse=True)
def bench():
    """Each bench as a module, by name."""
    sys.path.insert(0, str(BENCH))
    yield importlib.import_module
    sys.path.remove(str(BENCH))


class Rows:
    """Stands in for the checks and for the output."""

    def __init__(self):
        self.rows, self.said = [], []

    def expect(self, *row):
        self.rows.append(row)

    budget = expect

    def text(self, *lines):
        self.said += lines


# Differences to nothing: single turns differ by far more than medians do.
AGAIN = [-700, -300, -120, -60, -30, -20, -10, 0, 10, 20, 30, 60, 120, 300, 700] * 10


@pytest.mark.parametrize("cost, holds", [(200, False), (0, True), (-200, True), (15, True)])
def test_a_cost_is_compared_with_the_median_of_nothing(bench, cost, holds):
    found = bench("measure").beyond_noise([cost + one for one in AGAIN], AGAIN)
    assert (found["cost"], found["holds"]) == (cost, holds), found
    assert found["low"] < cost < found["high"] and 0 < found["noise"] <= 30, found
    assert bench("measure").beyond_noise([1], AGAIN) is None


def test_the_interval_of_thousands_of_values_is_that_of_order_statistics(bench):
    # 5,000 +- 1.96 * sqrt(5,000) / 2 ranks around the middle.
    low, high = bench("measure").interval(range(5_000))
    assert (low, high) == (pytest.approx(2_430, abs=2), 4_999 - low)


def test_one_allocation_costs_more_than_nothing(bench):
    """By the samples behind README's row, which is to say what they give."""
    rows = Rows()
    stored = json.loads((BENCH / "results" / "allocations-nvidia-h200.json").read_text())
    (case,) = [one for one in stored["cases"] if one["case"] == "d"]
    for depth, samples in case["samples"].items():
        bench("allocations").judge_cost(depth, samples, rows)
    assert [(what, holds) for what, _, _, holds in rows.rows] == [
        ("d: cumem adds, shallow", False), ("d: cumem adds, 30 frames deep", False)], rows.rows
    (_, _, cost, _), noise = rows.rows[1], r"nothing again of [+-]\d+ ns \[[+-](\d+), \+(\d+)\]"
    (row,) = [line for line in README.read_text().splitlines() if line.startswith("| one torch allocation")]
    assert cost.replace("[+", "[").replace(", +", ", ") in row, cost
    assert rows.rows[1][1] == f"<= the run's noise, {max(map(int, re.search(noise, row).groups()))} ns"


@pytest.mark.parametrize("cost, holds", [(200, False), (0, True)])
def test_a_launch_is_judged_by_the_same(bench, cost, holds):
    driver, rows = bench("driver"), Rows()
    def turns(more, spread=AGAIN):
        return [{driver.LAUNCH: 9 + (more + one) / 1e3} for one in spread]
    nothing = turns(0, [0] * len(AGAIN))
    driver.judge_launches(rows, [{"turns": {
        "none": nothing, "again": turns(0), driver.loop.OFF: nothing, driver.loop.SWITCHED: turns(cost)}}])
    ((_, _, _, found),) = rows.rows
    assert found is holds, rows.rows
    driver.judge_launches(rows, [{"turns": dict.fromkeys(
        ("none", "again", driver.loop.OFF, driver.loop.SWITCHED), [])}])
    assert rows.rows[1][3] is None


class Team:
    """Starts nothing."""

    orders, open = [], set()

    def __init__(self, script, specs):
        self.failed, self._asked, self._modes = {}, [], set(specs)
        self.orders.append(self._asked)

    def ask(self, mode, what):
        assert mode in self._modes and (mode == "first of all" or "first of all" in self.open)
        self._asked.append(mode)
        seconds = {"driver": 0.6, "cumem": 0.3}.get(mode, 0.25)
        return None if mode == "again" and len(self.orders) == 3 else {"first tensor": seconds}

    def __enter__(self):
        self.open |= self._modes
        return self

    def __exit__(self, *_):
        self.open -= self._modes


def test_starts_are_measured_often_and_apart_from_the_first(bench, monkeypatch):
    import random

    driver, rows = bench("driver"), Rows()
    monkeypatch.setattr(driver.measure, "Team", Team)
    started = driver.start_rounds(7, 60, random.Random(1))
    assert len(started) == 7 and Team.orders.pop(0) == ["first of all"] and not Team.open
    assert {frozenset(order) for order in Team.orders} == {frozenset(driver.STARTED)}
    assert len({tuple(order) for order in Team.orders}) > 3  # somebody is always the first
    assert len(driver.start_rounds(7, 0, random.Random(1))) == 2
    driver.tell_start(rows, started, [{"start": {driver.loop.SWITCHED: None, "profiler": None},
                                       "turns": {driver.loop.SWITCHED: [], driver.loop.OFF: []}}])
    told = [line.split() for line in rows.said[-1].splitlines()]
    (within,) = [line for line in told if "cuInit" in line]
    assert within[-4:] == ["+300.0", "[+300.0,", "+300.0]", "7"], told
    (again,) = [line for line in told if line[:2] == ["nothing,", "again"]]
    assert again[-1] == "6", again


@pytest.fixture
def files(bench, monkeypatch):
    import types

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/job/cache")
    return bench("allocations_train").Files(types.SimpleNamespace(__file__="/v/torch/__init__.py"))


def test_whose_a_stack_is(bench, files):
    models = bench("allocations_models").__file__
    bench_file, torch = str(BENCH / "allocations_train.py"), "/v/torch/nn/linear.py"
    vision = "/v/site-packages/torchvision/r.py"
    for paths, kind, nearest in (
            ([torch, bench_file, str(BENCH / "children.py")], "torch", torch),  # the loop alone is nobody's line
            ([torch, models, bench_file], "user", models),
            ([torch, vision, models, bench_file], "user", vision),
            ([torch, vision, bench_file], "library", vision),
            ([torch, "/tmp/torchinductor_me/ty/cty.py", torch, models], "generated",
             "/tmp/torchinductor_me/ty/cty.py"),
            (["/job/cache/ty/cty.py", torch, models, bench_file], "generated", "/job/cache/ty/cty.py"),
            (["/job/cache2/train.py", bench_file], "user", "/job/cache2/train.py"),
            ([models, "/job/cache/ty/cty.py"], "user", models),
            ([bench_file], "none", None), ([], "none", None)):
        found, frame = files.of_stack([(path, 1, "f") for path in paths])
        assert (found, frame and frame[0]) == (kind, nearest), (paths, found, frame)


def test_the_head_names_the_commit_of_a_checkout(bench, monkeypatch, tmp_path):
    measure = bench("measure")
    monkeypatch.setattr(measure, "HERE", tmp_path / "bench")
    (tmp_path / "bench").mkdir()
    assert measure.commit() is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run([*git, "init", "-q"], check=True)
    assert measure.commit() is None  # of nothing
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    wanted = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert wanted.startswith(measure.commit()) and len(measure.commit()) >= 7
    assert f"commit: {measure.commit()}" in measure.head(measure.machine())
