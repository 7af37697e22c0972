# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A collector whose lists keep failing their proof: the fallback takes over while the job runs.

The program itself breaks the proof.  Its own entry of gc.callbacks, behind ours, takes the
newest of our pair out of the collector's list before the list is read.
"""

import pytest

from process import NODES, run_ok

SPOILED = NODES + """
import ctypes
untrack = ctypes.pythonapi.PyObject_GC_UnTrack
untrack.argtypes, untrack.restype = (ctypes.py_object,), None
spoiling, phases, results = False, [], []

def ours():
    return [thing for thing in gc.get_objects() if type(thing).__name__ == "gc_sentinel"]

def spoil(phase, info):
    phases.append(phase)
    if spoiling and phase == "start":
        for twin in ours()[1::2]: untrack(twin)

def collect(times, spoiled):
    global spoiling
    spoiling = spoiled
    for _ in range(times):
        make_pair(); results.append(gc.collect())
    spoiling = False

gc.disable(); gc.collect(); gc.callbacks.append(spoil)
pages = []
{start}
"""
OBSERVE = "handle = cumem.observe_tensor_cycles(pages.append)"


def test_the_fallback_takes_over_and_says_why(tmp_path):
    run_ok(SPOILED.replace("{start}", OBSERVE) + """
collect(7, spoiled=True)
status = cumem.status()
assert (status["interceptor"], status["lost"]["bad_walks"]) == ("sentinel", 7), status
assert pages == [], "what is not proved is not told"
collect(1, spoiled=True)
status = cumem.status()
assert status["interceptor"] == "saveall", status
assert status["why"] == "the collector's lists failed their proof", status
assert status["layouts"]["collector"] == "not read" and status["lost"]["bad_walks"] == 8, status
assert pages == []
for number in range(1, 4):
    collect(1, spoiled=True)
    assert len(pages) == number, "the next collection is read"
assert pages[-1].report["cycles"][0]["bytes_each"] == 4096
assert pages[-1].report["interceptor"] == "saveall"
assert cumem.status()["seen"]["collections"] == 11 and cumem.status()["lost"]["bad_walks"] == 8
handle()
assert gc.callbacks == [spoil] and gc.get_debug() == 0 and gc.garbage == [] and ours() == []
assert cumem.status()["interceptor"] == "none"
""", cwd=tmp_path)


@pytest.mark.parametrize("start", [OBSERVE, "handle = cumem.warn_tensor_cycles(min_bytes=0)"])
def test_the_program_notices_nothing_of_it(tmp_path, start):
    """Results, callbacks, weak references and finalizers, before the switch, in it and after."""
    code = SPOILED + """
import weakref
said = []
class Final(Node):
    def __del__(self): said.append("final")
for _ in range(14):
    a, b = Final(torch.zeros(64)), Node()
    a.link, b.link = b, a
    watch = weakref.ref(b, lambda gone: said.append("gone"))
    del a, b
    collect(1, spoiled=True)
    said.append(watch() is None)
print(results, phases, said, gc.garbage, gc.get_debug())
print(cumem.status()["why"], file=sys.stderr)
"""
    plain, switched = (run_ok(code.replace("{start}", one), cwd=tmp_path) for one in ("", start))
    assert switched.out == plain.out and "'gone'" in plain.out
    assert "failed their proof" in switched.err and "failed their proof" not in plain.err


def test_a_few_failures_among_many_proofs_change_nothing(tmp_path):
    """The eighth counts, and a fifth of all: not what a program does now and then."""
    run_ok(SPOILED.replace("{start}", OBSERVE) + """
collect(40, spoiled=False)
assert len(pages) == 40
collect(9, spoiled=True)
status = cumem.status()
assert (status["interceptor"], status["lost"]["bad_walks"]) == ("sentinel", 9), status
collect(1, spoiled=False)
assert len(pages) == 41, "the sentinel goes on"
collect(1, spoiled=True)
assert cumem.status()["interceptor"] == "saveall", cumem.status()
""", cwd=tmp_path)
