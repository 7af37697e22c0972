# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Programs that end because memory ran out, where no observer of torch's tells of it."""

import json
import subprocess

import pytest
from cumem._report import PROGRAM

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


def test_no_code_of_what_it_came_from_runs(tmp_path):
    """Whether an exception is true or false is its own to say; the way goes on behind it."""
    run(LEAK + """
class Empty(Exception):
    __bool__ = __len__ = lambda self: os._exit(6)
def emptied():
    try:
        wrapped()
    except ValueError as error:
        try:
            raise Empty from error
        except Empty as empty:
            raise KeyError from empty
sys.excepthook = lambda *_: None  # since 3.13 Python's own asks too
main(emptied)
""", cwd=tmp_path)
    (cycle,) = report_of(tmp_path)["cycles"]
    assert cycle["trigger"] == "oom", cycle


def test_where_the_cause_cannot_be_read_the_report_is_written(tmp_path):
    run(LEAK + """
cumem._exhausted.cause = lambda: 1 / 0
main(wrapped)
""", cwd=tmp_path)
    (cycle,) = report_of(tmp_path)["cycles"]
    assert cycle["trigger"] == "exit", cycle


ALONE = LEAK.replace("make_pair(1 << 18)", "")


def test_it_is_told_without_dead_cycles(tmp_path):
    done = run(ALONE + "main(lambda: torch.empty(1 << 50))", cwd=tmp_path)
    report = report_of(tmp_path)
    assert report["cycles"] == []
    told = report["exhausted"]
    assert (told["iteration"], told["error"], told["asked_bytes"]) == (15, "RuntimeError", 1 << 52)
    assert told["holders"][0] == {"way": "`__main__.kept` (list, 15 items)", "bytes": 15 << 20}, told
    lines = done.err.splitlines()
    at = lines.index("cumem: memory ran out at iteration 15: RuntimeError, 4096 TiB asked for")
    assert lines[at + 1] == "   held  15 MiB: `__main__.kept` (list, 15 items)", done.err
    assert lines[at + 3].startswith("#1 LEAK +1.0 MiB per iteration"), done.err
    assert done.err.count("memory ran out") == 1, done.err
    leak, = tmp_path.glob("leak*.json")
    page = subprocess.run([PROGRAM, leak, "--format", "html", "-o", "-"], capture_output=True, text=True).stdout
    assert "<h1>Memory ran out at iteration 15: RuntimeError, 4096 TiB asked for.</h1>" in page, page[:2000]


def test_it_is_told_where_nothing_grows(tmp_path):
    """By the way to it, from the variables of the call that failed: largest first."""
    done = run(NODES + """
import logging
cumem.warn_tensor_cycles(min_bytes=0)
class Cache:
    def __init__(self):
        self.tables = {size: torch.zeros(size << 18) for size in (1, 2, 3)}
def main():
    cache, single = Cache(), torch.zeros(2 << 18)
    torch.empty(1 << 50)
main()
""", cwd=tmp_path)
    report = report_of(tmp_path)
    assert report["growth"] == report["cycles"] == []
    first, second = report["exhausted"]["holders"][:2]
    assert first["bytes"] == 6 << 20 and "tables (dict, 3 items)" in first["way"], report["exhausted"]
    assert second["bytes"] == 2 << 20 and "single" in second["way"], report["exhausted"]
    assert "cumem: memory ran out: RuntimeError, 4096 TiB asked for\n   held  6.0 MiB: " in done.err


def test_what_autograd_keeps_counts_with_who_holds_the_losses(tmp_path):
    done = run(NODES + """
cumem.warn_tensor_cycles(min_bytes=0)
def main():
    weight, losses = torch.ones(1 << 18, requires_grad=True), []
    for _ in range(15):
        losses.append(((weight * 2).tanh() ** 2).sum())
        cumem.step()
    torch.empty(1 << 50)
main()
""", cwd=tmp_path)
    first, second = report_of(tmp_path)["exhausted"]["holders"]
    assert "losses` (list, 15 items)" in first["way"] and 15 << 20 <= first["bytes"] < 16 << 20, first
    assert "weight" in second["way"] and second["bytes"] == 1 << 20, second
    assert "\n   held  15 MiB: <string>:20 main: local `losses` (list, 15 items)\n" in done.err, done.err


def test_what_is_dead_is_told_by_the_scan_alone(tmp_path):
    done = run(LEAK.replace("kept.append", "len") + "main(lambda: torch.empty(1 << 50))", cwd=tmp_path)
    report = report_of(tmp_path)
    assert report["cycles"] and report["exhausted"]["holders"] == [], report["exhausted"]
    assert done.err.index("memory ran out") < done.err.index("#1 DEAD CYCLE"), done.err


@pytest.mark.parametrize("how, asked", [
    ("lambda: bytearray(1 << 60)", None), ("lambda: fail(OutOfMemoryError('allocating 1,024 bytes'))", 1024),
    ("lambda: fail(MemoryError('Unable to allocate 8.00 GiB for an array'))", 8 << 30),
    ("lambda: fail(MemoryError('cannot allocate 10.11.12.13 bytes'))", None),
    ("lambda: fail(MemoryError(f'cannot allocate 1{0:0400} bytes'))", None),
    ("lambda: fail(MemoryError(f'cannot allocate 1{0:090} bytes'))", None)])
def test_what_was_asked_for_is_read(tmp_path, how, asked):
    run(ALONE + f"main({how})", cwd=tmp_path)
    assert report_of(tmp_path)["exhausted"].get("asked_bytes") == asked


def test_another_end_is_not_told_so(tmp_path):
    done = run(ALONE + "main(lambda: fail(KeyError(7)))", cwd=tmp_path)
    assert "exhausted" not in report_of(tmp_path) and "memory ran out" not in done.err


def test_a_script_whose_name_is_no_utf8_is_told_of(tmp_path):
    done = run(NODES + """
cumem.warn_tensor_cycles(min_bytes=0)
exec(compile('''
def main():
    mine = [torch.zeros(1 << 18) for _ in range(3)]
    torch.empty(1 << 50)
main()
''', os.fsdecode(b"e\\xee.py"), "exec"))
""", cwd=tmp_path)
    (first,) = report_of(tmp_path)["exhausted"]["holders"]
    assert first == {"way": "e?.py:4 main: local `mine` (list, 3 items)", "bytes": 3 << 20}, first
    assert "cumem: memory ran out: RuntimeError, 4096 TiB asked for\n   held  3.0 MiB: e?.py:4" in done.err, done.err
