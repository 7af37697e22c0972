# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem.watch(): what CUMEM_WARN_CYCLES=1 does, for a part of a program."""

import pytest

from process import NODES, run_ok

START = NODES + """
def interceptor():
    return cumem.status()["interceptor"]

MIB = 1 << 20
"""


def test_a_part_of_a_program(tmp_path):
    run_ok(START + """
with cumem.watch("here.json") as watcher:
    assert interceptor() != "none" and cumem.status()["looks"]["after_bytes"] >= 256 * MIB
    assert watcher.report["cycles"] == []
    make_pair(MIB // 2)
    watcher.step("train")
    gc.collect()
    cycle, = watcher.report["cycles"]
    assert cycle["bytes_each"] == 2 * MIB, cycle
    watcher.save("page.html")
    watcher.save("copy.json")
assert interceptor() == "none" and cumem.status()["looks"]["after_bytes"] == 0
assert "<html" in open("page.html").read(2000)
assert json.load(open("copy.json"))["cycles"][0]["fingerprint"] == cycle["fingerprint"]
assert json.load(open("here.json"))["format"] == "cumem-leak"
watcher.remove()
watcher()
""", cwd=tmp_path)


def test_what_is_dead_at_its_end_is_told(tmp_path):
    """No collection comes within it, nor does one later tell anybody."""
    done = run_ok(START + """
gc.disable()
def evaluate():
    for _ in range(3):
        make_pair(MIB // 2)

with cumem.watch("here.json") as watcher:
    evaluate()
cycle, = watcher.report["cycles"]
assert cycle["count"] == 3 and cycle["trigger"] == "scan", cycle
assert json.load(open("here.json"))["cycles"] == [cycle]
assert gc.collect() > 0

class Loop:
    def __init__(self):
        self.again, self.tensor = self, torch.zeros(MIB)

@cumem.watch("deep.json")
def train():
    Loop()
train()
assert gc.collect() > 0
found = json.load(open("deep.json"))["cycles"]
assert sorted(each["bytes_each"] for each in found) == [2 * MIB, 4 * MIB], found
""", cwd=tmp_path)
    assert "DEAD CYCLE x3" in done.err


def test_an_observer_ends_it_from_a_scan(tmp_path):
    """At exit: its report is on the disk all the same, and no scan calls the observer again."""
    assert run_ok(START + """
gc.disable()
calls = []
watcher = cumem.watch("here.json")
def on_cycle(page):
    calls.append(page)
    watcher.remove()
    report = json.load(open("here.json"))
    assert len(report["cycles"]) == 1 and len(calls) == 1
    print("told")
cumem.observe_tensor_cycles(on_cycle)
make_pair(MIB // 2)
""", cwd=tmp_path).out == "told\n"


def test_the_ends_of_calls_are_not_all_looked_at(tmp_path):
    """Six at once; then what the scans take is one part in a hundred of the run."""
    run_ok(START + """
from cumem import _runtime
scans, scan = [], _runtime._scan
def counted(*arguments, **keywords):
    scans.append(arguments)
    scan(*arguments, **keywords)
_runtime._scan = counted

@cumem.watch()
def step():
    return torch.zeros(16)
for _ in range(40):
    step()
assert 6 <= len(scans) < 12, len(scans)
""", cwd=tmp_path)


def test_its_end_calls_nobody_and_may_come_from_an_observer(tmp_path):
    """An observer hears of a cycle once, by the collection; and it may end the watch itself."""
    run_ok(START + """
from cumem import _budget
gc.disable()
calls = []
watcher = cumem.watch("here.json")
def on_cycle(page):
    calls.append(page)
    watcher.remove()
with cumem.observe_tensor_cycles(on_cycle):
    with cumem.watch("other.json"):
        make_pair(MIB // 2)
    assert calls == [] and len(json.load(open("other.json"))["cycles"]) == 1
    assert _budget._walks["leak"] <= 1 and not _budget.is_paid()
    cumem.find_cycles()
    gc.collect()
    assert len(calls) == 1, calls
assert interceptor() == "none"

class Stop(BaseException):
    pass
def stop(*_, **__):
    raise Stop
from cumem import _runtime
_runtime._scan = stop
try:
    with cumem.watch():
        pass
except Stop:
    assert interceptor() == "none" and not _runtime._handles
""", cwd=tmp_path)


def test_a_path_without_a_folder_is_told_at_once(tmp_path):
    done = run_ok(START + """
watcher = cumem.watch("later/here.json")
print("began", file=sys.stderr)
os.mkdir("later")
make_pair(MIB // 2)
gc.collect()
watcher.remove()
assert len(json.load(open("later/here.json"))["cycles"]) == 1
""", cwd=tmp_path)
    told = f"cumem.watch('later/here.json'): no folder yet: mkdir -p {tmp_path}/later"
    assert [told] == [line.removeprefix("cumem: ") for line in done.err.partition("began")[0].splitlines()]


def test_it_observes_at_once_until_it_is_removed(tmp_path):
    run_ok(START + """
watcher = cumem.watch(devices="cpu", stacks=False)
assert interceptor() != "none"
make_pair(MIB // 2)
gc.collect()
cycle, = watcher.report["cycles"]
assert all(storage.get("site") is None for storage in watcher.report["storages"])
watcher()
assert interceptor() == "none"
""", cwd=tmp_path)


def test_a_function(tmp_path):
    run_ok(START + """
@cumem.watch("deep.json")
def train(depth):
    "What it does."
    assert interceptor() != "none"
    if depth:
        train(depth - 1)
        assert interceptor() != "none"
    return depth

assert interceptor() == "none" and train.__doc__ == "What it does."
assert train(2) == 2 and interceptor() == "none"
assert train(depth=1) == 1

@cumem.watch()
def fail():
    raise KeyError("mine")
try:
    fail()
except KeyError:
    assert interceptor() == "none"
try:
    cumem.watch()(3)
except TypeError as error:
    assert "int" in str(error)
""", cwd=tmp_path)


def test_a_coroutine_is_watched_until_it_has_returned(tmp_path):
    """Not until it has been made, which runs none of it; of a generator nobody knows when it ends."""
    run_ok(START + """
import asyncio

@cumem.watch()
async def serve(depth):
    assert interceptor() != "none"
    await asyncio.sleep(0)
    assert interceptor() != "none"
    return depth

assert asyncio.iscoroutinefunction(serve) and asyncio.run(serve(3)) == 3
assert interceptor() == "none"

def items():
    yield 1
async def later():
    yield 1
class Items:
    def __call__(self):
        yield 1
for function in items, later, Items():
    try:
        cumem.watch()(function)
    except TypeError as error:
        assert "generator" in str(error)
    else:
        raise SystemExit(f"{function!r} was taken")
""", cwd=tmp_path)


UNOBSERVED = START + """
import logging, multiprocessing, signal
logging.basicConfig(format="%(message)s", stream=sys.stdout)

@cumem.watch()
def train():
    return interceptor()
"""


def test_in_a_forked_child_a_function_runs_unobserved(tmp_path):
    done = run_ok(UNOBSERVED + """
def child():
    for _ in range(2):
        assert train() == "none"
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
assert process.exitcode == 0 and train() != "none"
""", cwd=tmp_path)
    told, = done.out.splitlines()
    assert told.startswith("cumem: train() runs unobserved: cumem is silent in a forked child"), told


def test_what_a_handler_raises_as_a_function_begins_is_the_programs(tmp_path):
    run_ok(UNOBSERVED + """
from cumem import _runtime
def interrupted():
    del _runtime._retag
    _runtime._retag = retag
    signal.raise_signal(signal.SIGUSR1)
    sum(range(1000))
def stop(*_):
    raise ValueError("mine")
signal.signal(signal.SIGUSR1, stop)
retag, _runtime._retag = _runtime._retag, interrupted
try:
    train()
except ValueError:
    assert interceptor() == "none"
else:
    raise SystemExit("it was swallowed")
assert train() != "none" and interceptor() == "none"
""", cwd=tmp_path)


@pytest.mark.parametrize("holder, asks", [
    ("__main__", "train()"), ("builtins", "train()"), ("__main__", "watch().remove()"),
    ("__main__", "warn().remove()")])
def test_in_a_finalizer_at_the_very_end_nothing_begins(tmp_path, holder, asks):
    """Modules are gone then, and nothing would end it."""
    done = run_ok(UNOBSERVED + f"""
gc.disable()
class Trainer:
    def __del__(self, train=train, watch=cumem.watch, warn=cumem.warn_tensor_cycles, write=os.write):
        {asks}
        write(1, b"saved")
import {holder} as holder
holder.trainer = Trainer()
holder.trainer.me = holder.trainer
""".replace("return interceptor()", "pass"), cwd=tmp_path)
    assert (done.out, done.err) == ("saved", ""), done


def test_what_is_no_file_is_not_replaced(tmp_path):
    """save() writes to a device or a pipe, and through a link."""
    run_ok(START + """
import os, threading
watcher = cumem.watch()
os.mkfifo("pipe")
got = []
reader = threading.Thread(target=lambda: got.append(open("pipe").read()))
reader.start()
watcher.save("pipe")
reader.join()
assert got[0].startswith("<!DOCTYPE html>") and not os.path.isfile("pipe")
os.symlink("target.json", "link.json")
cumem.find_cycles().save("link.json")
assert os.path.islink("link.json") and json.load(open("target.json"))["format"] == "cumem-leak"
watcher.save(b"bytes.json")
for path, kind in (".", IsADirectoryError), ("no/such.html", FileNotFoundError):
    try:
        watcher.save(path)
    except kind as error:
        assert error.filename == path, error
    else:
        raise SystemExit(f"{path} was written")
assert sorted(os.listdir()) == ["bytes.json", "link.json", "pipe", "target.json"], os.listdir()
""", cwd=tmp_path)


def test_bad_values_name_themselves(tmp_path):
    run_ok(START + """
for value in ("gpu:x", -1, [], True):
    try:
        cumem.watch(devices=value)
    except ValueError as error:
        assert repr(value) in str(error), error
    else:
        raise SystemExit(f"{value!r} was taken")
for name, value in ("stacks", "x"), ("stacks", 1), ("stacks", None), ("path", "%q.json"), ("path", 3), ("path", []):
    try:
        cumem.watch(**{name: value})
    except ValueError as error:
        assert repr(value) in str(error), error
    else:
        raise SystemExit(f"{value!r} was taken")
assert interceptor() == "none"
""", cwd=tmp_path)


GROWS = START + """
def points(rows):
    return [(row["verdict"], row["series"][-1][0], row["count"]) for row in rows]

def read(path):
    return json.load(open(path))

kept = []
def grow(watcher, until):
    for _ in range(len(kept), until):
        kept.append(torch.zeros(1 << 18))
        watcher.step()
"""


def test_the_report_is_as_old_as_its_timeline(tmp_path):
    """Nobody has called cumem.growth(): by itself a look is due when the iterations have doubled."""
    run_ok(GROWS + """
with cumem.watch("here.json") as watcher:
    for until in (15, 30, 37):
        grow(watcher, until)
        report = watcher.report
        assert points(report["growth"]) == [("leak", until, until)], points(report["growth"])
        assert report["iteration"] == report["timeline"]["devices"][0]["points"][-1][0] == until
        watcher.save("copy.json")
        for path in ("copy.json", "here.json"):
            assert points(read(path)["growth"]) == points(report["growth"]), path
        assert points(cumem.growth()) == points(report["growth"])
""", cwd=tmp_path)


def test_the_end_of_it_is_in_the_report_and_in_its_file(tmp_path):
    run_ok(GROWS + """
with cumem.watch("here.json") as watcher:
    grow(watcher, 30)
globals().pop("kept")
for _ in range(3):
    assert points(watcher.report["growth"]) == [("leak", 30, 30)]
assert points(read("here.json")["growth"]) == [("leak", 30, 30)]
""", cwd=tmp_path)


def test_what_a_function_kept_is_in_the_file_when_it_is_over(tmp_path):
    run_ok(GROWS + """
@cumem.watch("here.json")
def train():
    kept = []
    for _ in range(27):
        kept.append(torch.zeros(1 << 18))
        cumem.step()
train()
assert points(read("here.json")["growth"]) == [("leak", 27, 27)], points(read("here.json")["growth"])
""", cwd=tmp_path)


def test_what_no_longer_grows_is_in_the_report(tmp_path):
    run_ok(GROWS + """
with cumem.watch("here.json") as watcher:
    grow(watcher, 30)
    verdicts = [watcher.report["growth"][0]["verdict"]]
    for _ in range(90):
        kept.append(torch.zeros(1 << 18))
        kept.pop(0)
        watcher.step()
    verdicts += [row["verdict"] for row in watcher.report["growth"]]
    assert verdicts[0] == "leak" and set(verdicts[1:]) == {"settled"}, verdicts
""", cwd=tmp_path)
