# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Programs that end because memory ran out, where no observer of torch's tells of it."""

import json

import pytest

from process import NODES, run

LEAK = NODES + """
cumem.warn_tensor_cycles(min_bytes=0)
gc.disable()
kept = []
def main(fail):
    for _ in range(15):
        kept.append(torch.zeros(1 << 18))
        make_pair(1 << 18)
        cumem.step()
    fail()
class Loud(Exception):
    def __getattribute__(self, name):
        os._exit(3)
    __cause__ = args = property(lambda self: os._exit(4))
    __str__ = __repr__ = lambda self: os._exit(5)
def wrapped():
    try:
        torch.empty(1 << 50)
    except RuntimeError as error:
        raise ValueError("batch 7") from error
class OutOfMemoryError(Exception):
    pass
def fail(error):
    raise error
"""


def report_of(folder):
    (path,) = folder.glob("*.json")
    return json.loads(path.read_text())


@pytest.mark.parametrize("how, last", [
    ("lambda: torch.empty(1 << 50)", "RuntimeError: "), ("lambda: bytearray(1 << 60)", "MemoryError"),
    ("wrapped", "ValueError: batch 7"), ("lambda: fail(OutOfMemoryError())", "OutOfMemoryError"),
    ("lambda: fail(RuntimeError('RESOURCE_EXHAUSTED: Out of memory'))", "RuntimeError: RESOURCE")])
def test_the_report_is_about_the_failure(tmp_path, how, last):
    done = run(LEAK + f"main({how})", cwd=tmp_path)
    assert done.code == 1 and f"\n{last}" in done.err.replace("__main__.", ""), done.err
    report = report_of(tmp_path)
    (cycle,) = report["cycles"]
    assert cycle["trigger"] == "oom" and cycle["count"] >= 14, cycle
    (row,) = [row for row in report["growth"] if any("kept" in step["edge"] for step in row["holder"])]
    assert row["verdict"] == "leak", row


@pytest.mark.parametrize("how", [
    "lambda: None", "lambda: sys.exit(1)", "lambda: fail(KeyError('out of order'))",
    "lambda: fail(KeyError())", "lambda: fail(KeyError(7, 'out of memory'))"])
def test_another_end_is_an_end(tmp_path, how):
    run(LEAK + f"main({how})", cwd=tmp_path)
    (cycle,) = report_of(tmp_path)["cycles"]
    assert cycle["trigger"] == "exit", cycle


def test_no_code_of_the_exceptions_runs(tmp_path):
    done = run(LEAK + """
sys.last_value = sys.last_exc = Loud()
main(lambda: None)
""", cwd=tmp_path)
    assert done.code == 0, done
    (cycle,) = report_of(tmp_path)["cycles"]
    assert cycle["trigger"] == "exit", cycle
