# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Where a device's memory is, with a torch.cuda that only pretends."""

import json

import pytest

from process import NODES, run, run_ok
from test_allocations import FOREIGN, START, stand_in  # noqa: F401

# Two segments of the common pool, fragmented; one of a graph's.
PRETEND = """
import types
MIB = 1 << 20

def segment(address, sizes, pool=(0, 0), stream=0):
    states = {"a": "active_allocated", "p": "active_pending_free", "f": "inactive"}
    blocks, at = [], address
    for kind, size, requested in sizes:
        blocks.append({"address": at, "size": size, "requested_size": requested, "state": states[kind]})
        at += size
    total = sum(size for _, size, _ in sizes)
    used = sum(size for kind, size, _ in sizes if kind == "a")
    return {"device": 0, "address": address, "total_size": total, "allocated_size": used,
            "stream": stream, "segment_pool_id": pool, "blocks": blocks}

segments = [
    segment(0x7f0000000000, [("a", 8 * MIB, 7 * MIB), ("f", 4 * MIB, 0), ("a", 8 * MIB, 8 * MIB)]),
    segment(0x7f1000000000, [("f", 6 * MIB, 0), ("p", 2 * MIB, 2 * MIB)], stream=0x55),
    segment(0x7f2000000000, [("a", 20 * MIB, 20 * MIB)], pool=(0, 1)),
]
stats = {"allocated_bytes": {"all": {"current": 36 * MIB, "peak": 40 * MIB}},
         "reserved_bytes": {"all": {"current": 48 * MIB}},
         "active_bytes": {"all": {"current": 38 * MIB}}}
torch.cuda._initialized = True
torch.cuda.is_initialized = lambda: True
torch.cuda.device_count = lambda: 2
torch.cuda.current_device = lambda: 0
torch.cuda.memory_stats_as_nested_dict = lambda index: dict(stats) if index == 0 else {}
torch.cuda.memory_snapshot = lambda: segments
torch.cuda.get_device_properties = lambda index: types.SimpleNamespace(total_memory=100 * MIB)
torch._C._cuda_isHistoryEnabled = lambda: False
"""


def test_memory_says_where_it_is(tmp_path):
    run_ok(NODES + PRETEND + """
for device in (None, 0, "cuda", "cuda:0", torch.device("cuda", 0)):
    use = cumem.memory(device)
    assert use["allocated"] == 36 * MIB and use["reserved"] == 48 * MIB
    assert use["cached"] == 10 * MIB and use["pending_free"] == 2 * MIB, use
    assert use["private_pools"] == 20 * MIB and use["largest_free"] == 6 * MIB
    assert use["peak_allocated"] == 40 * MIB, use
    assert use["total"] == 100 * MIB and use["frameworks"] == {"torch": (36 * MIB, 48 * MIB)}
    assert use["outside_frameworks"] is None and use["why"]  # no driver here
common, graph = sorted(use["pools"], key=lambda pool: pool["name"] != "common")
assert common["requested"] == 15 * MIB and common["allocated"] == 16 * MIB
assert common["segments"] == 2 and graph["name"] == "(0, 1)"
""", cwd=tmp_path)


def test_a_bad_device_is_named(tmp_path):
    run_ok(NODES + """
import pytest
for bad in ("cpu", "cuda:x", True, "", 3.5, 7):
    with pytest.raises(ValueError, match=repr(bad)):
        cumem.memory(bad)
""" + PRETEND + """
with pytest.raises(ValueError, match="1.*in use: cuda:0"):
    cumem.memory(1)
""", cwd=tmp_path)


def test_memory_that_was_all_given_back_is_said(tmp_path):
    """del model; torch.cuda.empty_cache()"""
    run_ok(NODES + PRETEND + """
with cumem.observe_tensor_cycles(print):
    device, = cumem.find_cycles(devices="cuda").report["devices"]
    assert device["reserved"] == 48 * MIB, device
    segments.clear()
    for kind in stats:
        stats[kind]["all"] = {"current": 0, "peak": 40 * MIB}
    found = cumem.find_cycles(devices="cuda")
    device, = found.report["devices"]
    assert (device["name"], device["allocated"], device["reserved"]) == ("cuda:0", 0, 0), device
    assert "pools" not in device and device["peak_allocated"] == 40 * MIB, device
    assert "48 MiB" not in found.text, found.text
    assert cumem.memory() == cumem.memory("cuda:0") and cumem.memory()["reserved"] == 0
""", cwd=tmp_path)


@pytest.mark.parametrize("framework", ["numba.cuda", "cuda.core", "rmm.mr"])
def test_a_framework_that_counts_nothing_is_in_use_where_the_device_has_a_context(
        framework, tmp_path):
    run_ok(f"framework = {framework!r}" + """
import sys, types
import cumem
from cumem import _core, _frameworks, _memory
from pytest import raises
_frameworks._has_context = lambda index: index == 1
_core.process_use = lambda index: (100, 0, 30, 50, 20, "")
nothing = cumem.memory()
assert nothing["allocated"] == 0 and nothing["free"] is None and "no accelerator" in nothing["why"]
with raises(ValueError, match="'cuda:0'.*in use: none"):
    cumem.memory("cuda:0")
with raises(ValueError, match="'cpu'; expected 'cuda'"):
    cumem.memory("cpu")
sys.modules[framework] = types.ModuleType(framework)
sys.modules[framework].get_per_device_resource = lambda index: None
with raises(ValueError, match="0.*in use: cuda:1"):
    cumem.memory(0)
use = cumem.memory()
assert use.keys() == nothing.keys()
assert use == cumem.memory("cuda:1") and use["frameworks"] == {} and use["allocated"] == 0
assert (use["outside_frameworks"], use["other_processes"], use["free"]) == (50, 20, 30)
row, = _memory.rows(snapshot=True)
assert row["name"] == "cuda:1" and row["outside_frameworks"] == 50 and row["frameworks"] == []
""", cwd=tmp_path)


def test_what_the_driver_says_of_this_process_beyond_the_frameworks(tmp_path):
    run_ok(NODES + PRETEND + """
from cumem import _core
_core.process_use = lambda index: (100 * MIB, 0, 8 * MIB, 60 * MIB, 32 * MIB, "")
use = cumem.memory()
assert use["outside_frameworks"] == 12 * MIB and use["other_processes"] == 32 * MIB, use
assert use["free"] == 8 * MIB and use["total"] == 100 * MIB
_core.process_use = lambda index: (100 * MIB, 0, 8 * MIB, 40 * MIB, 32 * MIB, "")
assert cumem.memory()["outside_frameworks"] == 0  # asked of both at different moments
""", cwd=tmp_path)


def test_an_allocator_without_counters_leaves_the_others_known(tmp_path):
    done = run_ok(NODES + PRETEND + """
def refuse(index):
    raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats.")
torch.cuda.memory_stats_as_nested_dict = refuse
sys.modules["numba.cuda"] = types.ModuleType("numba.cuda")
cumem._core.process_use = lambda index: (100 * MIB, 0, 8 * MIB, 60 * MIB, 32 * MIB, "")
from cumem import _frameworks
_frameworks._has_context = lambda index: index == 0
with cumem.observe_tensor_cycles(print):
    gc.collect()
    use = cumem.memory()
    assert use["frameworks"] == {} and use["outside_frameworks"] == 60 * MIB, use
""", cwd=tmp_path)
    assert done.err == ""


def test_a_recorder_of_the_users_is_not_asked(tmp_path):
    run_ok(NODES + PRETEND + """
torch._C._cuda_isHistoryEnabled = lambda: True
def forbidden():
    raise AssertionError("a long history takes seconds")
torch.cuda.memory_snapshot = forbidden
use = cumem.memory()
assert use["pools"] == [] and use["private_pools"] is None
assert use["pending_free"] == 2 * MIB and use["cached"] == 10 * MIB, use  # by torch's counters
assert use["why"].endswith("recorder is on, and not cumem's: it is not asked for its pools and largest free block")
found = cumem.find_cycles(devices="cuda")
assert "free), pools not asked for: the program's own recorder of torch is on" in " ".join(found.text.split()), found.text
assert found.report["devices"][0]["unasked"] is True
torch._C._cuda_isHistoryEnabled = lambda: False
torch.cuda.memory_snapshot = lambda: segments
assert "recorder" not in cumem.memory()["why"] + cumem.find_cycles(devices="cuda").text
""", cwd=tmp_path)


def test_a_snapshot_that_raises_is_named(tmp_path):
    done = run_ok(NODES + PRETEND + """
def refuse():
    raise RuntimeError("no segments here")
torch.cuda.memory_snapshot = refuse
cumem._core.process_use = lambda index: (100 * MIB, 0, 8 * MIB, 60 * MIB, 32 * MIB, "")
with cumem.observe_tensor_cycles(print):
    use = cumem.memory()
    cumem.find_cycles(devices="cuda")
assert use["pools"] == [] and use["largest_free"] is None and use["reserved"] == 48 * MIB, use
assert use["why"].startswith("torch.cuda.memory_snapshot() raises RuntimeError (call it"), use["why"]
assert "largest free block are not known" in use["why"]
torch.cuda.memory_snapshot = lambda: segments
assert cumem.memory()["why"] == ""
""", cwd=tmp_path)
    assert done.err == ""


def test_the_report_tells_of_pools_and_of_what_cpp_holds(stand_in, tmp_path):  # noqa: F811
    run_ok(START + PRETEND + """
def saved_by_autograd():
    allocate(BASE, 8 * MIB)
handle = cumem.observe_tensor_cycles(print)
saved_by_autograd()
allocate(BASE + 12 * MIB, 8 * MIB)
found = cumem.find_cycles()
report, text = found.report, " ".join(found.text.split())
device, = report["devices"]
assert " cuda:0 (100 MiB): torch 48 MiB (10 MiB cached, 2.0 MiB pending free, 20 MiB in" in text, text
assert device["cached"] == cumem.memory()["cached"] == 10 * MIB
assert device["private_pools"] == 20 * MIB and device["largest_free"] == 6 * MIB, device
assert {pool["name"] for pool in device["pools"]} == {"common", "(0, 1)"}
sites = {site["id"]: site["frames"] for site in report["sites"]}
names = {sites[held["site"]][1]["name"]: held["bytes"] for held in report["held"] if held["site"]}
assert names["saved_by_autograd"] == 8 * MIB, report["held"]
assert all(held["framework"] == "torch" for held in report["held"])
""", cwd=tmp_path, STAND_IN=stand_in)


def test_blocks_from_before_are_known_by_their_size(stand_in, tmp_path):  # noqa: F811
    run_ok(START + PRETEND + """
allocate(0x7f2000000000, 20 * MIB)
with cumem.observe_tensor_cycles(print):
    assert hook()["live_bytes"] == 36 * MIB, hook()
    free(0x7f2000000000, 20 * MIB)
    assert hook()["live_bytes"] == 16 * MIB and hook()["unknown_frees"] == 0
""", cwd=tmp_path, STAND_IN=stand_in)


def test_a_storage_says_its_stream_and_its_pool(stand_in, tmp_path):  # noqa: F811
    """Of a block from before that torch's snapshot knows."""
    run_ok(START + PRETEND + FOREIGN + """
allocate(0x7f2000000000, 20 * MIB)
segments[2]["stream"] = 0x66
def storage_at(address):
    node = Node(over_dlpack(address))
    node.link = node
    del node
    report = cumem.find_cycles(devices="cuda").report
    gc.collect()
    assert report["devices"][0]["peak_allocated"] == 40 * MIB, report["devices"]
    storage, = report["storages"]
    return storage
gc.disable()
with observe():
    storage = storage_at(0x7f2000000000 + MIB)
    assert (storage["stream"], storage["pool"]) == ("0x66", "(0, 1)"), storage
    assert storage["block_bytes"] == 20 * MIB, storage
    storage = storage_at(0x7f0000000000 + 12 * MIB)
    assert storage["stream"] == "0x0" and "pool" not in storage, storage
    allocate(0x7f2000000000 + 20 * MIB, 4 * MIB)
    segments.append(segment(0x7f2000000000 + 20 * MIB, [("a", 4 * MIB, 4 * MIB)], pool=(0, 2)))
    storage = storage_at(0x7f2000000000 + 20 * MIB)
    assert storage["pool"] == "(0, 2)", storage
""", cwd=tmp_path, STAND_IN=stand_in)


def test_each_segment_of_a_graphs_pool_is_known(stand_in, tmp_path):  # noqa: F811
    """However many there are, in any order."""
    run_ok(START + PRETEND + FOREIGN + """
segments[:] = [segment(BASE + at * 4 * MIB, [("a", 4 * MIB, 4 * MIB)], pool=(0, 1) if at != 299 else (0, 0))
               for at in (*range(1000, 300, -1), *range(300))]
gc.disable()
with observe():
    allocate(BASE + 300 * 4 * MIB, 4 * MIB)
    for at in (0, 255, 256, 299, 300, 301, 1000):
        node = type(f"Node{at}", (), {})()
        node.link, node.tensor = node, over_dlpack(BASE + at * 4 * MIB)
        del node
    storages = cumem.find_cycles(devices="cuda").report["storages"]
pools = {(int(storage["address"], 16) - BASE) // (4 * MIB): storage.get("pool") for storage in storages}
assert pools == {at: "(0, 1)" if at not in (299, 300) else None for at in pools} and len(pools) == 7, pools
""", cwd=tmp_path, STAND_IN=stand_in)


def test_iterations_are_told_by_the_program_or_its_optimizer(stand_in, tmp_path):  # noqa: F811
    run_ok(START + """
torch.cuda._initialized = True
torch.cuda.is_initialized = lambda: True
torch.cuda.memory_stats_as_nested_dict = lambda index: {}
torch.cuda.memory_snapshot = lambda: []
handle = cumem.observe_tensor_cycles(print)
layer, other = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
first, second = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (layer, other))
for i in range(3):
    layer(torch.ones(3)).sum().backward()
    allocate(BASE + i * 512)
    allocate(BASE + 8192, 1024)
    free(BASE + 8192, 1024)
    first.step()
    second.step()
report = cumem.find_cycles().report
device, = report["devices"]
assert report["iteration"] == 3
assert device["iterations"] == [[0, 0, 512, 1536], [1, 512, 1024, 2048], [2, 1024, 1536, 2560]], device
cumem.step()
first.step()
assert cumem.find_cycles().report["iteration"] == 4
handle.remove()
assert not sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
""", cwd=tmp_path, STAND_IN=stand_in)
    run_ok("import cumem; cumem.step(); cumem.step('epoch')\n"
           "try: cumem.step(3)\nexcept TypeError as e: assert 'int' in str(e)\nelse: raise SystemExit(1)",
           cwd=tmp_path)


def test_the_numbers_of_the_programs_own_hooks_are_theirs(stand_in, tmp_path):  # noqa: F811
    """Neither taken by ours, nor is a dict changed that a step goes through."""
    run_ok(START + """
import gc
torch.cuda._initialized = True
torch.cuda.is_initialized = lambda: False
torch.cuda.memory_stats_as_nested_dict = lambda index: {}
torch.cuda.memory_snapshot = lambda: []
optim = sys.modules["torch.optim.optimizer"]
hooks = optim._global_optimizer_post_hooks
seen = []
def own(*_):
    gc.collect()
    gc.collect()
    seen.append(list(hooks))
handle = cumem.observe_tensor_cycles(print)
layer = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
theirs = optim.register_optimizer_step_post_hook(own)
assert theirs.id == 0, theirs.id
torch.cuda.is_initialized = lambda: True
optimizer.step()
assert seen == [[0]], seen
from cumem import _runtime
_runtime._deliver("memory", None)  # as every few seconds
optimizer.step()
assert seen[1] == [0, "cumem"], seen
own = lambda *_: handle.remove()
last = optim.register_optimizer_step_post_hook(own)
assert last.id == 1
optimizer.step()
last.remove()
""", cwd=tmp_path, STAND_IN=stand_in)


def test_asking_torch_collects_nothing_that_is_looked_for(stand_in, tmp_path):  # noqa: F811
    run_ok(START + PRETEND + """
import gc
def snapshot():
    [[] for _ in range(100_000)]
    return segments
torch.cuda.memory_snapshot = snapshot
for enabled in (True, False):
    (gc.enable if enabled else gc.disable)()
    node = type("Node", (), {})()
    node.link, node.tensor = node, torch.zeros(1 << 20)
    del node
    report = cumem.find_cycles(devices="cpu").report
    assert len(report["cycles"]) == 1
    assert gc.isenabled() == enabled
    gc.collect()
""", cwd=tmp_path, STAND_IN=stand_in)


def test_a_collection_does_not_wait_for_the_devices(stand_in, tmp_path):  # noqa: F811
    """Their driver takes up to 8 ms: it is asked when the collection is over."""
    run_ok(START + PRETEND + """
import gc
from cumem import _runtime
gc.disable()
handle = cumem.warn_tensor_cycles(devices="cpu")
order = []
_runtime._note_memory = lambda **_: order.append("asked")
node = type("Node", (), {})()
node.link, node.tensor = node, torch.zeros(1 << 20)
del node
order.extend(map(gc.collect, [2]))  # no byte code runs between the stop and the number's place
assert len(order) == 2 and order[0] > 0 and order[1] == "asked", order
handle.remove()
""", cwd=tmp_path, STAND_IN=stand_in)


def test_memory_that_ran_out_is_reported_without_any_cycle(stand_in, tmp_path):  # noqa: F811
    done = run_ok(START + PRETEND + """
from cumem import _runtime
observers = []
torch._C._cuda_attach_out_of_memory_observer = observers.append
handle = cumem.warn_tensor_cycles(directory=".")
allocate(BASE, 8 * MIB)
observer, = observers
observer(0, 512 * MIB, 100 * MIB, 1 * MIB)
cumem.flush()
import glob
name, = glob.glob("leak-*.json")
report = json.load(open(name))
device, = report["devices"]
print(device["asked_bytes"] // MIB, report["cycles"], len(report["held"]) > 0)
told = report["exhausted"]
print(told["error"], told["device"], told["asked_bytes"] // MIB)
""", cwd=tmp_path, STAND_IN=stand_in)
    assert done.out == "512 [] True\nOutOfMemoryError cuda:0 512\n"
    assert "cumem: memory ran out on cuda:0: OutOfMemoryError, 512 MiB asked for" in done.err


OOM = START + PRETEND + """
import glob
observers = []
torch._C._cuda_attach_out_of_memory_observer = observers.append
handle = cumem.warn_tensor_cycles(directory=".")
allocate(BASE, 8 * MIB)
def run_out(asked):
    observers[0](0, asked, 100 * MIB, 1 * MIB)
    cumem.flush()
def device():
    name, = glob.glob("leak-*.json")
    return json.load(open(name))["devices"][0]
"""


@pytest.mark.parametrize("on", [False, True])
def test_the_way_out_is_not_what_is_on_already(stand_in, on, tmp_path):  # noqa: F811
    done = run_ok(OOM + f"""
for each in segments:
    each["is_expandable"] = {on}
run_out(8 * MIB)
print(*[pool.get("expandable", False) for pool in device()["pools"]])
""", cwd=tmp_path, STAND_IN=stand_in)
    assert done.out == f"{on} {on}\n"
    assert "cached in pieces of at most 6.0 MiB: fragmented" in done.err, done.err
    assert ("expandable_segments:True" in done.err) == (not on), done.err
    assert ("are on already: allocate what lives" in done.err) == on, done.err


def test_why_is_told_again_where_it_is_another_reason(stand_in, tmp_path):  # noqa: F811
    """A search for the batch size catches the first failure, and dies of the next."""
    done = run_ok(OOM + """
from cumem import _budget
_budget.is_paid = lambda: True
for asked in (8, 8, 512, 8):
    run_out(asked * MIB)
stats["reserved_bytes"]["all"]["current"] = 38 * MIB  # nothing is cached
cumem._core.process_use = lambda index: (100 * MIB, 0, 8 * MIB, 40 * MIB, 52 * MIB, "")
for _ in range(2):
    run_out(8 * MIB)
""", cwd=tmp_path, STAND_IN=stand_in)
    told = done.err.split("cumem: memory ran out on cuda:0: OutOfMemoryError, ")
    whys = [text.partition("   why   ")[2].split("\n")[0][:35] for text in told[1:]]
    assert whys == [
        "8.0 MiB asked, 10 MiB cached in pie", "", "512 MiB asked, more than the device",
        "8.0 MiB asked, 10 MiB cached in pie", "8.0 MiB asked, other processes hold", ""], whys
    assert "\nmemory cuda:0 (100 MiB): torch" in told[3] and "   fix   " in told[3], told[3]


AGAIN = OOM + """
def out_of_memory():
    return cumem.status()["looks"]["out_of_memory"]
objects = [{"a": i} for i in range(100_000)]
for asked in 8, 16, 32, 64:
    run_out(asked * MIB)
"""


def test_each_later_failure_waits_until_it_is_paid(stand_in, tmp_path):  # noqa: F811
    """But for what was asked; and a program that goes on has had one text."""
    done = run_ok(AGAIN + """
known = out_of_memory()
assert (known["count"], known["skipped"]) == (1, 3) and known["longest"] == known["seconds"] > 0, known
from cumem import _budget
_budget._state["not_before"] = 0.0
run_out(128 * MIB)
assert (out_of_memory()["count"], device()["asked_bytes"]) == (2, 128 * MIB), out_of_memory()
run_out(256 * MIB)
""", cwd=tmp_path, STAND_IN=stand_in)
    assert [line.partition("OutOfMemoryError, ")[2] for line in done.err.splitlines() if "ran out" in line] \
        == ["8.0 MiB asked for", "128 MiB asked for"], done.err


@pytest.mark.parametrize("end, told", [
    ("raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 64.00 MiB.')", 64),
    ("raise KeyError('batch')", 8)])
def test_the_failure_that_ends_the_program_is_told(stand_in, tmp_path, end, told):  # noqa: F811
    done = run(AGAIN + end, cwd=tmp_path, STAND_IN=stand_in)
    path, = tmp_path.glob("leak-*.json")
    report = json.loads(path.read_text())
    exhausted, device = report["exhausted"], report["devices"][0]
    assert (exhausted["error"], exhausted["device"]) == ("OutOfMemoryError", "cuda:0"), exhausted
    assert exhausted["asked_bytes"] == told << 20 and device["asked_bytes"] == 64 << 20, report
    assert done.err.count("ran out on cuda:0") == 1 + (told == 64), done.err


def test_what_grows_is_looked_at_when_memory_runs_out(stand_in, tmp_path):  # noqa: F811
    """The report has what grew until then, with who holds it."""
    run_ok(OOM + FOREIGN + """
from cumem import _growth
_growth.look_when_due = _growth.look_early = lambda *_: None  # nothing else looks
gc.disable()
losses = []
for i in range(30):
    losses.append(own(BASE + (i + 8) * 4 * MIB))
    cumem.step()
run_out(8 * MIB)
path, = glob.glob("leak-*.json")
row, = [row for row in json.load(open(path))["growth"] if row["verdict"] == "leak"]
assert (row["bytes"], row["count"]) == (120 * MIB, 30), row
assert any("losses" in step["edge"] for step in row["holder"]), row
""", cwd=tmp_path, STAND_IN=stand_in)
