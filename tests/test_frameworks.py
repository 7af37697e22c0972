# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The objects of Numba, RMM and cuda.core: bytes, device, stack, and what
must not be believed of them.  (JAX's: test_jax.)

Each program runs in a process of its own.  Numba is a stand-in with the same
attributes (fake_frameworks/), RMM and cuda.core are stand-ins with the same C
fields (frameworks_probe/).
"""

import functools
import importlib.util
import os
import pathlib
import subprocess
import tempfile

import pytest

from frameworks_case import (
    MIB, PROLOGUE, expect, expect_nothing, run, run_jax)

HERE = pathlib.Path(__file__).resolve().parent
PROBE = PROLOGUE + """
import frameworks_probe as probe
module("rmm")
module("rmm.pylibrmm.device_buffer", DeviceBuffer=probe.DeviceBuffer)
module("cuda.core", PinnedMemoryResource=type("PinnedMemoryResource",
                                              (probe.MemoryResource,), {}))
module("cuda.core._memory._buffer", Buffer=probe.Buffer,
       MemoryResource=probe.MemoryResource)
"""


@functools.cache
def probe_folder():
    spec = importlib.util.spec_from_file_location(
        "build_frameworks_probe", HERE / "frameworks_probe" / "build.py")
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    folder = tempfile.mkdtemp()
    builder.build(folder)
    return folder


def run_probe(code):
    return run(PROBE + code, folder=probe_folder())


def run_numba(code):
    return run(PROLOGUE + """
from numba.cuda.cudadrv import devicearray, driver
import numba.cuda
first, second = driver.Context(0), driver.Context(1)

def array(context, mib, kind=devicearray.DeviceNDArray):
    return kind((mib << 20,), "not a dtype", 1, context.memalloc(mib << 20))
""" + code, folder=HERE / "fake_frameworks")


# ---- Numba

def test_numba_arrays_have_bytes_device_and_stack():
    result = run_numba("""
start()
cycle(array(first, 3))
cycle(array(second, 5))
finish(left=lambda: len(first.allocations))
""")
    expect(result, [
        [f"DeviceNDArray [{3 * MIB}] cuda:0 3.0 MiB", "cuda:0", 3 * MIB, True],
        [f"DeviceNDArray [{5 * MIB}] cuda:1 5.0 MiB", "cuda:1", 5 * MIB, True],
    ], 8 * MIB)
    assert result["left"] == 0, "kept alive"


def test_numba_memory_freed_by_finalizers_is_counted():
    """Numba's weakref.finalize() may run before the garbage is looked at."""
    result = run_numba("""
start()
held = array(first, 3)
node = Node()
node.held, node.me = held, node
pointer = held.gpu_data
weak = pointer.__dict__["_mem"]
# What a collection does before it calls anybody: the pointer's weak references
# are gone, its finalizer has run, and the proxy is empty.
for reference in weakref.getweakrefs(pointer):
    callback = reference.__callback__
    info = type(callback)._registry.pop(callback)
    info.func(*info.args, **info.kwargs or {})
    del reference, callback, info
del held, pointer, weak, node
gc.collect(0)
finish(left=lambda: len(first.allocations))
""")
    assert result["left"] == 0
    assert [row[2] for report in result["collections"] for row in report["rows"]] in (
        [], [3 * MIB])


def test_numba_views_count_their_memory_once():
    result = run_numba("""
start()
node = Node()
node.held = array(first, 4)
node.me = node
memory = node.held.gpu_data._mem
view = driver.MemoryPointer(memory.context, memory.device_pointer + 64, 1 << 20)
node.part = devicearray.DeviceNDArray((1 << 20,), None, 1,
                                      driver.OwnedPointer(memory, view))
node.same = devicearray.DeviceNDArray((4 << 20,), None, 1, node.held.gpu_data)
del node, memory, view
finish()
""")
    assert result["scan"]["total"] == 4 * MIB
    assert result["collections"][0]["total"] == 4 * MIB


def test_numba_view_of_live_memory_frees_nothing():
    result = run_numba("""
start()
live = array(first, 4)
memory = live.gpu_data._mem
view = driver.MemoryPointer(memory.context, memory.device_pointer + 64, 1 << 20)
cycle(devicearray.DeviceNDArray((1 << 20,), None, 1,
                                driver.OwnedPointer(memory, view)))
del view
finish()
""")
    assert result["scan"]["total"] == 0
    assert sum(report["total"] for report in result["collections"]) == 0


def test_numba_objects_that_are_not_whole_count_as_nothing():
    result = run_numba("""
class Raising(devicearray.DeviceNDArray):
    @property
    def gpu_data(self):
        raise RuntimeError("called")
    def __getattribute__(self, name):
        if armed:
            calls.append(name)
        return object.__getattribute__(self, name)
    def __init__(self):
        pass

armed, calls = False, []
N = devicearray.DeviceNDArray
start()
cycle(N.__new__(N))
cycle(Raising())
for size in (-1, 0, 1 << 48, 1 << 80, "many", None, True, 1.5):
    memory = driver.AutoFreePointer(first, 0x1000, size, finalizer=int)
    cycle(N((1,), None, 1, memory))
array_ = array(first, 3)
del array_.gpu_data
cycle(array_)
del array_
cycle(N((1,), None, 1, driver.MemoryPointer(first, 0x1000, 1 << 20)))   # not its own
cycle(N((1,), None, 1, driver.MemoryPointer(first, 0x1000, 1 << 20, owner=Node())))
cycle(N((1,), None, 1, object()))
cycle(N((1,), None, 1, None))
memory = driver.AutoFreePointer(first, 0x1000, 1 << 20, finalizer=int)
pointer = memory.own()
pointer.gone = pointer._mem
del memory.size
first.keep = memory
cycle(N((1,), None, 1, pointer))
del pointer, memory
armed = True
scan = summary(cumem.find_cycles())
gc.collect()
armed = False
finish(calls=calls, first=scan)
""")
    assert result["calls"] == []
    assert result["first"] == {"rows": [], "total": 0}
    assert result["collections"] == []


def test_numba_memory_without_a_context_has_no_index():
    result = run_numba("""
start()
cycle(devicearray.DeviceNDArray((1,), None, 1, driver.AutoFreePointer(
    Node(), 0x1000, 1 << 20, finalizer=int)))
finish()
""")
    assert [row[1:3] for row in result["scan"]["rows"]] == [["cuda", MIB]]


def test_numba_mapped_memory_is_the_hosts():
    result = run_numba("""
start()
cycle(devicearray.DeviceNDArray((1,), None, 1, driver.MappedMemory(
    first, 0x1000, 1 << 20, finalizer=int)))
finish()
""")
    assert [row[1:3] for row in result["scan"]["rows"]] == [["cpu", MIB]]


# ---- RMM

def test_rmm_buffers_have_bytes_and_stack():
    result = run_probe("""
start()
cycle(probe.DeviceBuffer(0x7f0000000000, 3 << 20))
finish(calls=probe.calls)
""")
    expect(result, [["DeviceBuffer cuda 3.0 MiB", "cuda", 3 * MIB, True]],
           3 * MIB)
    assert result["calls"] == 0


def test_rmm_buffers_that_are_not_whole_count_as_nothing():
    result = run_probe("""
class Sub(probe.DeviceBuffer):
    @property
    def size(self):
        raise RuntimeError("called")

start()
cycle(probe.DeviceBuffer(0, 0))
cycle(Sub(0, 0))
for size in (0, 1 << 48, (1 << 64) - 1):
    cycle(probe.DeviceBuffer(0x7f0000000000, size))
finish(calls=probe.calls)
""")
    expect_nothing(result)
    assert result["calls"] == 0


def test_rmm_subclass_is_read_by_the_class_it_derives_from():
    result = run_probe("""
class Sub(probe.DeviceBuffer):
    @property
    def size(self):
        raise RuntimeError("called")

start()
cycle(Sub(0x7f0000000000, 2 << 20))
finish(calls=probe.calls)
""")
    assert [row[:3] for row in result["scan"]["rows"]] == [
        ["Sub cuda 2.0 MiB", "cuda", 2 * MIB]]


CUDA_DRIVER = """
int cuDeviceGetCount(int *count) { *count = %d; return 0; }
"""


@pytest.mark.parametrize("devices, name", [(1, "cuda:0"), (2, "cuda")])
def test_rmm_device_is_known_where_there_is_one(tmp_path, devices, name):
    source, driver = tmp_path / "driver.c", tmp_path / "libcuda.so.1"
    source.write_text(CUDA_DRIVER % devices)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC",
                    "-Wl,-soname,libcuda.so.1", str(source), "-o", str(driver)],
                   check=True)
    result = run_probe(f"""
import ctypes
ctypes.CDLL({str(driver)!r})
start()
cycle(probe.DeviceBuffer(0x7f0000000000, 3 << 20))
finish()
""")
    assert [row[1] for row in result["scan"]["rows"]] == [name]


# ---- cuda.core

def test_cuda_core_buffers_have_bytes_device_and_stack():
    result = run_probe("""
start()
cycle(probe.Buffer(3 << 20, probe.DeviceMemoryResource()))
cycle(probe.Buffer(2 << 20, sys.modules["cuda.core"].PinnedMemoryResource()))
finish(calls=probe.calls)
""")
    assert [3 * MIB, "cuda:3", True] == [
        result["scan"]["rows"][0][i] for i in (2, 1, 3)]
    assert len(result["scan"]["rows"]) == 1, "pinned memory is the host's"
    assert result["collections"] == [result["scan"]]
    assert result["calls"] == 0


def test_cuda_core_buffers_that_own_nothing_count_as_nothing():
    result = run_probe("""
class Memory(probe.MemoryResource):
    @property
    def device_id(self):
        raise RuntimeError("called")

start()
cycle(probe.Buffer(3 << 20))            # neither resource nor owner, or closed
cycle(probe.Buffer(3 << 20, ...))       # half-built
cycle(probe.Buffer(3 << 20, Node()))    # no resource at all
for size in (0, 1 << 48):
    cycle(probe.Buffer(size, probe.DeviceMemoryResource()))
finish(calls=probe.calls)
""")
    expect_nothing(result)
    assert result["calls"] == 0


def test_cuda_core_resource_of_the_users_is_not_asked():
    result = run_probe("""
class Memory(probe.MemoryResource):
    @property
    def device_id(self):
        raise RuntimeError("called")

start()
cycle(probe.Buffer(3 << 20, Memory()))
finish(calls=probe.calls)
""")
    assert [row[1:3] for row in result["scan"]["rows"]] == [["cuda", 3 * MIB]]
    assert result["calls"] == 0


def test_wrappers_are_taken_back_and_stacks_come_again():
    result = run_probe("""
start()
handle.remove()
early = probe.Buffer(1 << 20, probe.DeviceMemoryResource())
handle = cumem.observe_tensor_cycles(reports.append)
start()
cycle(early)
cycle(probe.Buffer(3 << 20, probe.DeviceMemoryResource()))
del early
finish()
""")
    assert {row[2]: row[3] for row in result["scan"]["rows"]} == {
        MIB: False, 3 * MIB: True}


def test_frameworks_are_kept_apart_and_summed():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    result = run_jax("""
import torch
start()
cycle(jnp.zeros((3, 1024, 1024), jnp.int8))
cycle(torch.zeros(5, 1024, 1024, dtype=torch.int8))
finish()
""")
    expect(result, [
        ["ArrayImpl [3, 1024, 1024] int8 cpu 3.0 MiB", "cpu", 3 * MIB, True],
        ["Tensor [5, 1024, 1024] int8 cpu 5.0 MiB", "cpu", 5 * MIB, True],
    ], 8 * MIB)


# ---- growth of a framework whose allocator nobody hears

GROWING = """
start() # from now on it is known how these are read
def train(keep, steps=20):
    for step in range(steps):
        x = array(first, 2)
        keep(x)
        del x
        cumem.step()
"""


def test_growth_without_a_hook_is_seen():
    result = run_numba(GROWING + """
kept = []
train(kept.append)
row, = cumem.growth()
views = [array(second, 1)] * 3
print(json.dumps({key: row[key] for key in
                  ("verdict", "device", "bytes_per_iteration", "count", "advice")}
                 | {"frame": row["frames"][0]["name"], "held": row["holder"][-2]["edge"]}))
""")
    assert result["verdict"] == "leak" and result["device"] == "cuda:0"
    assert result["bytes_per_iteration"] == 2 * MIB and result["count"] == 20
    assert result["frame"] == "array" and "kept" in result["advice"]


def test_growth_of_memory_whose_address_is_not_shown():
    result = run_probe("""
def make():
    return probe.Buffer(2 << 20, probe.DeviceMemoryResource())
start()
kept = []
for step in range(20):
    make()
    kept.append(make())
    cumem.step()
(row,) = cumem.growth()
print(json.dumps([row["verdict"], row["bytes_per_iteration"], row["count"],
                  row["frames"][0]["name"], "kept" in row["advice"]]))
""")
    assert result == ["leak", 2 * MIB, 20, "make", True]


def test_what_a_framework_frees_does_not_grow():
    result = run_numba(GROWING + """
from collections import deque
train(lambda x: None)
train(deque(maxlen=3).append, 30)
print(json.dumps([row["verdict"] for row in cumem.growth() if row["verdict"] != "settled"]))
""")
    assert result == []


def test_no_two_threads_learn_a_layout_at_once():
    """One took what the other had learnt, which found nothing then, for good.  A forked child begins anew."""
    result = run("""
import gc, json, os, sys, threading, types
import cumem
from cumem import _jax
gc.disable()
sys.modules["jax"] = types.ModuleType("jax")
inside, most = [], []
def meanwhile():
    gc.collect()
    child = os.fork()
    if child == 0:
        inside.clear()
        cumem.why_alive(meanwhile)  # what still works there, and learns
        os._exit(len(most) - 1)
    most.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
def probe():
    inside.append(None)
    most.append(len(inside))
    if len(most) == 1:
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()
    inside.pop()
_jax.probe = probe
with cumem.observe_tensor_cycles(print):
    gc.collect()
print(json.dumps(most))
""")
    assert result == [1, 1, 1]
