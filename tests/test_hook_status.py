# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What status() says of the hooks of torch: why none is in, and when one is."""

import subprocess

from process import run_ok
from test_allocations import START, stand_in  # noqa: F401


def test_the_status_says_who_is_missing(tmp_path):
    """Torch, an observer, or the library: each another way out."""
    run_ok("""
import sys, types
import cumem
def told():
    status = cumem.status()
    return status["allocator_hook"]["why"], status["allocator_hook"]["host"]["why"], status["frameworks"]["torch"]
assert told() == ("nobody observes", "nobody observes", "not imported"), told()
with cumem.observe_tensor_cycles(print, devices=["cpu"]):
    assert told() == ("torch is not imported", "torch is not imported", "not imported"), told()
for name in ("torch", "torch._C"):
    sys.modules[name] = types.ModuleType(name)
assert told() == ("nobody observes", "nobody observes", "imported; nobody observes"), told()
with cumem.observe_tensor_cycles(print, devices=["cpu"]):
    hook, host, torch = told()
    assert hook == host and hook.startswith("no libc10.so is loaded: a static build of torch"), hook
    assert torch.startswith("imported; not ready yet"), torch
for name in ("torch", "torch._C"):
    del sys.modules[name]
import torch
assert told()[2] == "imported; nobody observes", told()
assert cumem.status()["allocator_hook"]["forward"] == "not looked for: no hook of torch is in"
with cumem.observe_tensor_cycles(print):
    assert told()[2] == "struct layout", told()
assert told() == ("nobody observes", "nobody observes", "imported; nobody observes"), told()
""", cwd=tmp_path)


def test_the_status_says_that_stacks_are_off(stand_in, tmp_path):  # noqa: F811
    code = START + """
def told():
    status = cumem.status()
    return {"stacks are off" in status["layouts"]["stack"], "stacks are off" in hook()["forward"]}
assert told() == {False}, cumem.status()
with OBSERVE:
    assert hook()["hook"] == "torch slot" and told() == {OFF}, cumem.status()
assert told() == {False}, cumem.status()
"""
    observe, watch = "cumem.observe_tensor_cycles(print)", "cumem.watch(stacks=False)"
    for observe, settings, off in ((observe, {}, False), (observe, {"CUMEM_STACKS": 0}, True), (watch, {}, True)):
        run_ok(code.replace("OBSERVE", observe).replace("OFF", str(off)),
               cwd=tmp_path, STAND_IN=stand_in, **settings)


def test_an_allocator_that_is_loaded_late_is_heard(stand_in, tmp_path):  # noqa: F811
    """While somebody observes; until then what is known of others is kept."""
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", str(tmp_path / "libother.so")], check=True)
    before, loaded = START.split("fake = ")
    run_ok(before + """
from cumem import _core
gc.disable()
def look():
    for _ in range(100):  # most collections look for nothing
        gc.collect(0)
def known():
    return cumem.status()["allocator_hook"]["hook"], [block[:2] for block in _core.blocks()]
handle = cumem.observe_tensor_cycles(print, devices="cuda")
assert "no CUDA (libc10_cuda.so is not loaded)" in cumem.status()["allocator_hook"]["why"]
_core.seed_blocks([(512, 1024, 0, None, 0)])
import ctypes
ctypes.CDLL("./libother.so")
look()
assert known() == ("none", [(512, 1024)]), known()
fake = """ + loaded + """
look()
assert known() == ("torch slot", []), known()
allocate()
assert known() == ("torch slot", [(BASE, 512)]), known()
handle.remove()
assert known()[0] == "none"
""", cwd=tmp_path, STAND_IN=stand_in)


def test_r21_what_there_was_no_room_for_is_told(stand_in, tmp_path):  # noqa: F811
    """Of a device beyond those that have a table."""
    done = run_ok(START + """
with cumem.watch("here.json") as watcher:
    make_pair(1 << 19)
    for address in range(BASE, BASE + 3 * 512, 512):
        allocate(address, device=100)
    assert hook()["lost"] == 3, hook()
    for _ in range(2):
        gc.collect()
        assert watcher.report["lost"]["events"] in (0, 3)
lost = json.load(open("here.json"))["lost"]
assert (lost["events"], lost["reason"]) == (3, "allocations that there was no room to note"), lost
""", cwd=tmp_path, STAND_IN=stand_in)
    assert "DEAD CYCLE" in done.err
