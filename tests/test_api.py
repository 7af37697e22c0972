# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The Python face, as INTERFACES says it: observe, warn, find, status, flush."""

import pytest

import cumem
from process import NODES, run, run_ok


def test_callback_has_run_when_the_collecting_statement_is_over(tmp_path):
    done = run_ok(NODES + """
import threading
seen = []
handle = cumem.observe_tensor_cycles(lambda page: seen.append((page, threading.get_ident())))
make_pair()
assert seen == []
gc.collect()
assert len(seen) == 1 and seen[0][1] == threading.get_ident()
gc.collect()
assert len(seen) == 1, "no call without a finding"
page = seen[0][0]
assert isinstance(page, str) and page.startswith("<!DOCTYPE html>") and "</html>" in page
assert page.report["format"] == "cumem-leak" and page.report["version"] == 1
assert page.report["cycles"][0]["bytes_each"] == 4096
assert page.text.startswith("cumem: ") and "Node .link" in page.text
page.save("page.html"); page.save("leak.json")
assert open("page.html").read() == page
assert json.load(open("leak.json")) == page.report
handle(); handle.remove()
make_pair(); gc.collect()
assert len(seen) == 1
print("whole")
""", cwd=tmp_path)
    assert done.lines == ["whole"]


def test_handle_is_a_context_manager_and_restores_everything(tmp_path):
    run_ok(NODES + """
def state():
    return (list(gc.callbacks), gc.get_debug(), sys.getprofile(), sys.gettrace(),
            dict(vars(torch.Tensor)))
before = state()
with cumem.observe_tensor_cycles(print) as handle:
    assert cumem.status()["interceptor"] in ("sentinel", "saveall"), cumem.status()
after = state()
assert after == before, [pair for pair in zip(before, after) if pair[0] != pair[1]]
assert cumem.status()["interceptor"] == "none", cumem.status()
""", cwd=tmp_path)


def test_a_report_is_given_out_again_when_nobody_has_kept_it(tmp_path):
    """Equal findings have one page; each report tells of its own event all the same."""
    run_ok(NODES + """
seen, kept = [], []
def look(report):
    seen.append((id(report), str(report), report.report["cycles"][0]["bytes_each"]))
    if keeping: kept.append(report)
with cumem.observe_tensor_cycles(look):
    for size, keeping in ((1, False), (2, False), (3, True), (4, True), (5, False), (6, False)):
        make_pair(size << 10)
        gc.collect()
ids, pages, sizes = zip(*seen)
assert sizes == tuple(size << 12 for size in (1, 2, 3, 4, 5, 6)), sizes
assert set(pages) == {pages[0]}
assert ids[0] == ids[1] == ids[2] and ids[4] == ids[5]
assert len(set(ids)) == 3, "one that is kept is nobody else's"
assert [report.report["cycles"][0]["bytes_each"] for report in kept] == [3 << 12, 4 << 12]
from cumem import _report
last, = _report._kept.values()
assert last._event is None and last._json is None, "nothing of the event is held on to"
""", cwd=tmp_path)


def test_exception_of_a_callback_goes_to_the_unraisable_hook(tmp_path):
    done = run_ok(NODES + """
caught, seen = [], []
sys.unraisablehook = lambda args: caught.append(args.exc_type)
def bad(page): raise KeyError("mine")
cumem.observe_tensor_cycles(bad); cumem.observe_tensor_cycles(seen.append)
make_pair(); gc.collect()
assert caught == [KeyError], caught
assert len(seen) == 1, "the next observer is called all the same"
print("ok")
""", cwd=tmp_path)
    assert done.out == "ok\n", done.err


def test_find_cycles_frees_nothing_and_collects_nothing(tmp_path):
    run_ok(NODES + """
import weakref
gc.collect(); gc.disable()
make_pair()
dead = [o for o in gc.get_objects() if type(o) is Node]
watch = weakref.ref(dead[0]); del dead
before = gc.get_stats()
first, second = cumem.find_cycles(), cumem.find_cycles()
assert gc.get_stats() == before
assert watch() is not None
for page in first, second:
    assert [c["count"] for c in page.report["cycles"]] == [1]
    assert page.report["cycles"][0]["trigger"] == "manual"
gc.collect()
assert watch() is None
assert cumem.find_cycles().report["cycles"] == []
assert "no dead cycle" in cumem.find_cycles().text
""", cwd=tmp_path)


def test_warning_goes_to_the_logger_with_the_report_beside_it(tmp_path):
    run_ok(NODES + """
import logging
records = []
class Keep(logging.Handler):
    def emit(self, record): records.append(record)
logging.getLogger("cumem").addHandler(Keep())
handle = cumem.warn_tensor_cycles(directory="reports" if os.mkdir("reports") is None else None)
make_pair(1 << 20); gc.collect()
assert cumem.flush(30)
assert len(records) == 1 and records[0].levelno == logging.WARNING
text = records[0].getMessage()
assert "DEAD CYCLE, 4.0 MiB" in text and text == text.rstrip(), text
name = text.rsplit(" ", 1)[1]
report = json.load(open(name))
assert report["cycles"][0]["total_bytes"] == 4 << 20 and name.startswith("reports/")
assert os.stat(name).st_mode & 0o777 == 0o600
make_pair(1024); gc.collect(); cumem.flush(30)
assert len(records) == 1, "another below the threshold says nothing"
handle()
""", cwd=tmp_path)


def test_min_bytes_keeps_small_findings_from_an_observer(tmp_path):
    run_ok(NODES + """
seen = []
cumem.observe_tensor_cycles(seen.append, min_bytes="1MiB")
make_pair(1024); gc.collect(); assert seen == []
make_pair(1 << 20); gc.collect(); assert len(seen) == 1
""", cwd=tmp_path)


def test_a_device_is_listed_by_its_name_or_by_its_kind(tmp_path):
    """As the core is asked; nothing that only begins like it."""
    run_ok(NODES + """
from cumem import _core
asked = ["cpu", "cpu,cuda", "cuda:1,cpu", "auto", "cp", "cpus", "cpu:0", "cuda", "", ",", "cuda:1,cp", "c,u"]
found = []
def note(page):
    found.append([names for names in asked if _core.event_for(page._event, names, 0) is not None])
with cumem.observe_tensor_cycles(note):
    make_pair(); gc.collect()
assert found == [["cpu", "cpu,cuda", "cuda:1,cpu", "auto"]], found
""", cwd=tmp_path)


def test_what_nobody_else_has(tmp_path):
    run_ok(NODES + """
from cumem._core import unshared
made = {b"a": [1], b"b": [2]}
kept = made[b"b"]
assert unshared(made, b"a") == [1] and unshared(made, b"b") is None and unshared(made, b"c") is None
for wrong in (([], 0), ({},), ({}, [])):
    try:
        unshared(*wrong)
    except TypeError:
        continue
    raise AssertionError(wrong)
""", cwd=tmp_path)


def test_each_observer_has_the_findings_that_it_asked_for(tmp_path):
    """In one collection: of the page, the text and the report of each."""
    run_ok(NODES + """
class Large(Node): pass
class Idle: link = None
live = torch.zeros(1024)
seen = {}
def observe(name, **asked):
    return cumem.observe_tensor_cycles(seen.setdefault(name, []).append, **asked)
handles = [observe("all"), observe("again"), observe("large", min_bytes="1MiB"),
           observe("huge", min_bytes="1GiB"), observe("cpu", devices=["cpu"]),
           observe("cuda", devices="cuda"), observe("cuda:1", devices=1)]
for _ in range(2):
    make_pair(1024)
    n = Large(torch.zeros(1 << 20)); n.link = n
    n = Node(live[5:]); n.link = n; n.idle = Idle()     # holds nothing of its own
    del n; gc.collect()
sizes = {name: [sorted(c["peak_bytes"] for c in page.report["cycles"]) for page in pages]
         for name, pages in seen.items()}
whole, large = [[0, 4096, 4 << 20]] * 2, [[4 << 20]] * 2
assert sizes == {"all": whole, "again": whole, "large": large, "huge": [], "cpu": whole,
                 "cuda": [], "cuda:1": []}, sizes
assert seen["all"][0] is seen["again"][0] is seen["cpu"][0], "one report for equal findings"
for page in seen["large"]:
    assert "#1 DEAD CYCLE, 4.0 MiB" in page.text and "#2" not in page.text, page.text
    assert "Large" in page and "4.0 KiB" not in page
[handle() for handle in handles[:2] + handles[4:5]]
make_pair(); gc.collect()
assert [len(pages) for pages in seen.values()] == [2, 2, 2, 0, 2, 0, 0]
with cumem.warn_tensor_cycles(devices="cpu"):
    make_pair(); gc.collect(); assert cumem.flush(30)
assert [len(pages) for pages in seen.values()] == [2, 2, 2, 0, 2, 0, 0]
""", cwd=tmp_path)


def test_devices_that_are_not_watched_do_not_count(tmp_path):
    run_ok(NODES + """
seen = []
with cumem.observe_tensor_cycles(seen.append, devices="cuda"):
    make_pair(); gc.collect()
assert seen == []
with cumem.observe_tensor_cycles(seen.append, devices=["cpu", 0]):
    make_pair(); gc.collect()
assert len(seen) == 1
with cumem.observe_tensor_cycles(seen.append, devices=torch.device("cpu")):
    make_pair(); gc.collect()
assert len(seen) == 2
""", cwd=tmp_path)


def test_memory_of_the_host_counts_for_whom_names_it_beside_an_accelerator(tmp_path):
    run_ok(NODES + """
automatic, named = [], []
handles = cumem.observe_tensor_cycles(automatic.append), cumem.observe_tensor_cycles(named.append, devices="cpu")
make_pair(); gc.collect()
assert len(automatic) == len(named) == 1
cumem._core.accelerator()       # one is in use from here on
make_pair(); gc.collect()
assert len(automatic) == 1 and len(named) == 2
""", cwd=tmp_path)


@pytest.mark.parametrize("bad", ["cud:0:1", "", [], -1, "cuda:x", object(), "gpu", "x", 1.5, True, "gpu:0"])
def test_bad_device_is_named(bad):
    with pytest.raises(ValueError) as caught:
        cumem.find_cycles(devices=bad)
    shown = repr(bad[0]) if isinstance(bad, list) and bad else repr(bad)
    assert shown in str(caught.value)


@pytest.mark.parametrize("bad", ["1XB", "MiB", -5, "lots", 1.5, True])
def test_bad_size_is_named(bad):
    with pytest.raises(ValueError, match="not a size") as caught:
        cumem.observe_tensor_cycles(print, min_bytes=bad)
    assert repr(bad) in str(caught.value)
    assert cumem.status()["interceptor"] == "none"


def test_callback_must_be_callable():
    with pytest.raises(TypeError, match="callable"):
        cumem.observe_tensor_cycles("page.html")


def test_torch_compat_observer_gets_the_live_objects(tmp_path):
    run_ok("""
import gc
from cumem.compat.torch_cycles import observe_garbage
seen = []
def observer(garbage):
    seen.append([type(o).__name__ for o in garbage if type(o).__name__ == "Node"])
class Node: pass
gc.collect()
remove = observe_garbage(observer)
n = Node(); n.me = n; del n
assert gc.collect() >= 1
assert sum(len(s) for s in seen) == 1, seen
remove(); remove()
n = Node(); n.me = n; del n
gc.collect()
assert sum(len(s) for s in seen) == 1
assert gc.garbage == [] and gc.get_debug() == 0
kept = []
remove = observe_garbage(lambda garbage: kept.extend(o for o in garbage if type(o) is Node))
n = Node(); n.me = n; n.value = 42; del n
gc.collect()
assert kept[0].value == 42 and kept[0].me is kept[0], "what an observer keeps is whole"
""", cwd=tmp_path)


def test_equal_findings_are_drawn_once(tmp_path):
    run_ok(NODES + """
import subprocess
runs, real = [], subprocess.run
def counted(*args, **kw):
    runs.append(args); return real(*args, **kw)
subprocess.run = counted
pages = []
cumem.observe_tensor_cycles(pages.append)
for _ in range(5):
    make_pair(); gc.collect()
assert len(pages) == 5 and len(set(pages)) == 1 and len(runs) == 1
""", cwd=tmp_path)


def test_a_page_of_one_event_does_not_say_that_no_collection_was_seen(tmp_path):
    """It is kept for equal findings, so that it cannot have a run's numbers; watch() has them."""
    run_ok(NODES + """
pages = []
with cumem.watch("leak.json") as watcher:
    with cumem.observe_tensor_cycles(pages.append):
        make_pair(); gc.collect()
    make_pair()
    pages.append(cumem.find_cycles())
    assert watcher.report["collector"]["seen"] > 0
for page in pages:
    assert "None was seen" not in page and "Not recorded on this page" in page
    assert "collector" not in page.report
assert len(pages) == 2
""", cwd=tmp_path)


def test_without_the_program_the_page_says_that_it_has_no_drawing(tmp_path):
    run_ok(NODES + """
import cumem._report
cumem._report.PROGRAM = "/nonexistent/cyclereport"
pages = []
cumem.observe_tensor_cycles(pages.append)
make_pair(); gc.collect()
assert "Node" in pages[0] and "<svg" not in pages[0] and "Graphviz" in pages[0]
""", cwd=tmp_path)


def test_a_tensor_is_found_among_garbage_of_many_types(tmp_path):
    run_ok(NODES + """
pages = []
handle = cumem.observe_tensor_cycles(pages.append)
for first in (True, False):
    many = [type(f"T{i}", (), {})() for i in range(300)]
    ring = [Node(torch.zeros(1 << 18)), *many]
    for item, following in zip(ring, ring[1:] + ring[:1]):
        item.link = following
    del many, ring, item, following
    gc.collect()
    assert len(pages) == 1 + (not first), pages
""", cwd=tmp_path)


def test_resurrected_memory_is_not_reported_as_dead(tmp_path):
    run_ok(NODES + """
kept = []
class Phoenix(Node):
    def __del__(self): kept.append(self)
pages = []
cumem.observe_tensor_cycles(pages.append)
p = Phoenix(torch.zeros(4096)); p.link = p; del p
gc.collect()
assert kept and kept[0].tensor.sum() == 0
for page in pages:
    for cycle in page.report["cycles"]:
        assert cycle["class"] == "resurrected" and cycle["peak_bytes"] == 0
""", cwd=tmp_path)


def test_async_generators_that_a_loop_ends_are_dead(tmp_path):
    """asyncio's finalizer hook brings each back for a turn of the loop: they counted as resurrected, and nothing was said."""
    run_ok(NODES + """
import asyncio
class Source:
    def __init__(self):
        self.tensor = torch.zeros(4096)
        self.rows = self.produce()
    async def produce(self):
        yield self.tensor
pages = []
async def main():
    with cumem.observe_tensor_cycles(pages.append):
        source = Source()
        await anext(source.rows)
        del source
        gc.collect()
        await asyncio.sleep(0)
asyncio.run(main())
cycle, = pages[-1].report["cycles"]
assert cycle["class"] == "collectable" and cycle["total_bytes"] == 16384, cycle
assert "await .rows.aclose() when done" in cycle["advice"], cycle["advice"]
""", cwd=tmp_path)


def test_what_lives_on_beside_an_async_generator_is_not_dead(tmp_path):
    run_ok(NODES + """
import asyncio
kept, pages = [], []
class Phoenix(Node):
    def __del__(self): kept.append(self)
class Source:
    def __init__(self):
        self.tensor = torch.zeros(8192)
        self.rows = self.produce()
    async def produce(self):
        yield self.tensor
async def main():
    with cumem.observe_tensor_cycles(pages.append):
        source, node = Source(), Phoenix(torch.zeros(4096))
        node.link = node
        await anext(source.rows)
        del source, node
        gc.collect()
        await asyncio.sleep(0)
asyncio.run(main())
classes = {cycle["bytes_each"]: cycle["class"] for cycle in pages[-1].report["cycles"]}
assert kept and classes[32768] == "collectable" and classes.get(16384, "resurrected") == "resurrected", classes
""", cwd=tmp_path)


def test_memory_that_a_finalizer_drops_is_counted(tmp_path):
    run_ok(NODES + """
class Closer(Node):
    def __del__(self): self.tensor = None
pages = []
cumem.observe_tensor_cycles(pages.append)
c = Closer(torch.zeros(4096)); c.link = c; del c
gc.collect()
cycle, = pages[0].report["cycles"]
assert cycle["class"] == "finalizer" and cycle["peak_bytes"] == 4 * 4096
""", cwd=tmp_path)


def test_view_of_live_weights_enters_no_total_but_a_dead_base_does(tmp_path):
    run_ok(NODES + """
weights = torch.zeros(1 << 20)
pages = []
with cumem.observe_tensor_cycles(pages.append):
    n = Node(weights[10:]); n.link = n; del n
    gc.collect()
    for page in pages:
        assert [c["peak_bytes"] for c in page.report["cycles"]] == [0]
    pages.clear()
    n = Node(torch.zeros(1 << 20)[10:]); n.link = n; del n      # only C++ holds the base
    gc.collect()
    assert [c["peak_bytes"] for c in pages[-1].report["cycles"]] == [4 << 20]
    n = Node(torch.relu(torch.ones(1 << 18, requires_grad=True))); n.link = n; del n  # saved too
    gc.collect()
    assert [c["peak_bytes"] for c in pages[-1].report["cycles"]] == [2 << 20]  # and the leaf behind it
gc.disable()
n = Node(weights[10:]); n.link = n; del n
assert sum(c["peak_bytes"] for c in cumem.find_cycles().report["cycles"]) == 0
n = Node(torch.zeros(1 << 20)[10:]); n.link = n; del n
assert sum(c["peak_bytes"] for c in cumem.find_cycles().report["cycles"]) == 4 << 20
gc.collect()
gc.freeze()  # the weights live on behind it
n = Node(weights.detach()); n.link = n; del n
assert sum(c["peak_bytes"] for c in cumem.find_cycles().report["cycles"]) == 0
""", cwd=tmp_path)


def test_shared_storage_is_counted_once(tmp_path):
    run_ok(NODES + """
pages = []
cumem.observe_tensor_cycles(pages.append)
t = torch.zeros(1 << 20)
for _ in range(3):
    n = Node(t); n.link = n; n.view = t[5:]
del n, t
gc.collect()
assert sum(c["peak_bytes"] for c in pages[0].report["cycles"]) == 4 << 20
""", cwd=tmp_path)


@pytest.mark.parametrize("asked", [
    "cumem.find_cycles()", "cumem.observe_tensor_cycles(print)", "cumem.warn_tensor_cycles()",
    "cumem.why_alive(self)"])  # fmt: skip
def test_asked_while_the_interpreter_finalizes(tmp_path, asked):
    """No tensor is made then: torch 2.13 ends the process where one that has a view is let go of."""
    done = run(f"""\
import gc, sys, torch, cumem
gc.set_threshold(1_000_000)
class Asker:
    def __del__(self):
        assert sys.is_finalizing()
        {asked}
        print("asked", flush=True)
asker = Asker(); asker.me = asker
del asker
""", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "asked\n", "")
