# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem.watch(): what CUMEM_WARN_CYCLES=1 does, for a part of a program."""

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


def test_bad_values_name_themselves(tmp_path):
    run_ok(START + """
for value in ("gpu:x", -1, [], True):
    try:
        cumem.watch(devices=value)
    except ValueError as error:
        assert repr(value) in str(error), error
    else:
        raise SystemExit(f"{value!r} was taken")
assert interceptor() == "none"
""", cwd=tmp_path)
