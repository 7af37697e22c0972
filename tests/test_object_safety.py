# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Reading runs no code of the user's and changes nothing."""

import functools
import gc
import os
import pathlib
import subprocess
import sys
import types
import weakref

import pytest

from objects_zoo import *  # noqa: F403


CALLS = []


def called(*_, **__):
    CALLS.append(1)
    raise RuntimeError("the user's code was run")


class HostileMeta(type):
    armed = False

    def __getattribute__(cls, name):
        if HostileMeta.armed:
            called()
        return super().__getattribute__(name)

    def __instancecheck__(cls, instance):
        return called() if HostileMeta.armed else False

    __subclasscheck__ = __instancecheck__


SLOTS = ["__repr__", "__str__", "__eq__", "__hash__", "__getattr__",
         "__iter__", "__len__", "__getitem__", "__bool__", "__call__",
         "__next__", "__contains__", "__format__", "__dir__", "__index__",
         "__int__", "__float__", "__bytes__", "__sizeof__", "__reduce_ex__",
         "__get__", "__await__", "__lt__", "__add__", "items", "keys",
         "values", "append", "get"]


def hostile(name, *bases, **extra):
    def armed(self, *arguments):
        return called() if HostileMeta.armed else 0

    namespace = {slot: armed for slot in SLOTS}
    namespace["__hash__"] = lambda self: (
        called() if HostileMeta.armed else 7)
    namespace["__eq__"] = lambda self, other: (
        called() if HostileMeta.armed else self is other)
    namespace["__getattribute__"] = lambda self, attribute: (
        called() if HostileMeta.armed
        else object.__getattribute__(self, attribute))
    namespace["__class__"] = property(lambda self: called())
    namespace["__dict__"] = property(lambda self: called())
    return HostileMeta(name, bases, namespace | extra)


class EvilText(str):
    def __eq__(self, other):
        return called() if HostileMeta.armed else str.__eq__(self, other)

    def __hash__(self):
        return called() if HostileMeta.armed else str.__hash__(self)

    __str__ = __repr__ = __len__ = __iter__ = called


def hostile_zoo():
    Plain = hostile("Plain")
    kinds = [hostile("OfDict", dict), hostile("OfList", list),
             hostile("OfTuple", tuple), hostile("OfSet", set),
             hostile("OfFrozenset", frozenset), hostile("OfError", Exception),
             hostile("OfInt", int), hostile("OfStr", str), Plain,
             hostile("OfModule", types.ModuleType),
             hostile("OfPartial", functools.partial),
             hostile("Slots", __slots__=("a", "b"))]
    # As keys of a class's dict, in the way of any look-up of these names.
    namespace = {EvilText(text): 1 for text in (
        "__del__", "__module__", "__name__", "a")}
    odd = type("Odd", (), {"x": 1})
    evil_dict = {key: [1] for key in namespace}
    things = [Plain(), kinds[1]([[1]]), kinds[2]([[1]]), kinds[3](),
              kinds[4](), kinds[5]([1]), kinds[6](3), kinds[7]("x"),
              kinds[9]("evil_module"), kinds[10](print, [1]), kinds[11](),
              odd(), evil_dict, *kinds]
    mapping = kinds[0]()
    dict.__setitem__(mapping, "k", [1])
    things.append(mapping)
    things.append({Plain(): [1], EvilText("k"): [2], kinds[6](9): [3]})
    things.append({Plain()})
    target = Plain()
    things += [weakref.proxy(target), weakref.ref(target, CALLS.append),
               target]
    gone = Plain()
    things += [weakref.proxy(gone, CALLS.append), weakref.ref(gone)]
    callable_gone = hostile("Callable")()
    things.append(weakref.proxy(callable_gone))
    del gone, callable_gone
    CALLS.clear()
    things.append(types.CellType(things[0]))
    things.append([things[0], things])
    things.append(property(called))
    things.append(started(generator(things[0])))
    things.append(returned_frame(things[0]))
    things.append(types.MethodType(called, things[0]))
    things.append(functools.partial(called, things[0], key=things[0]))
    function = closure(things[0])
    function.__name__ = EvilText("evil")
    function.__module__ = things[0]
    things.append(function)
    for name, value in (("__module__", things[0]), ("__doc__", things[0])):
        type.__setattr__(odd, name, value)
    return things


def test_no_code_of_the_user_runs(probe):
    things = hostile_zoo()
    for kind in (type(thing) for thing in things):
        assert isinstance(kind, type)
    CALLS.clear()
    HostileMeta.armed = True
    try:
        probe.begin(things)
        count = probe.count_edges(things)
        for thing in things:
            probe.describe(thing)
            probe.edges(thing)
            probe.type(type(thing))
    finally:
        HostileMeta.armed = False
    assert CALLS == []
    assert count > len(things)


# ---- nothing changes


def test_reference_counts_and_the_collector_stay_as_they_were(probe):
    # Not None and small ints, which everyone has.
    things = [thing for thing in tame_zoo() if sys.getrefcount(thing) < 1000]
    for thing in things:
        probe.describe(thing)
        probe.edges(thing)
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        counts = [sys.getrefcount(thing) for thing in things]
        before = gc.get_count()
        probe.begin(things)
        probe.count_edges(things)
        for thing in things:
            if isinstance(thing, type):
                probe.type(thing)
        after = gc.get_count()
        assert [sys.getrefcount(thing) for thing in things] == counts
        assert after[0] - before[0] <= 2 * sum(
            isinstance(thing, type) for thing in things) + 3
        costs = []
        for call in (len, len, len, probe.count_edges):
            before = gc.get_count()
            call(things)
            costs.append(gc.get_count()[0] - before[0])
        assert costs[2] == costs[3]
    finally:
        if was:
            gc.enable()


def test_no_memory_at_any_moment(folder):
    """Each allocation fails in turn, alone and with all after it."""
    script = """
import sys
sys.path.insert(0, sys.argv[1])
import objects_probe as probe
class Node: pass
def make():
    node = Node()
    node.me, node.many = node, [node] * 50
    def function():
        return node
    return [node, node.many, function, function.__closure__, {"k": node}]
def work():
    things = make()
    probe.begin(things)
    count = probe.count_edges(things)
    number = probe.stack()[0]
    probe.code(make.__code__)
    probe.type(Node)
    return count, number
probe.renew()
work()
live = probe.fail_at(-1)
for ahead in (False, True):
    nth = 0
    while True:
        probe.fail_at(nth, ahead)
        made = probe.renew()
        counted = work() if made else None
        probe.fail_at(-1)
        if nth > 5000:
            raise SystemExit("no end")
        whole = probe.renew() and work()
        if probe.fail_at(-1) != live:
            raise SystemExit(f"{nth}: {probe.fail_at(-1)} of {live} blocks")
        if counted is not None and counted[0] != whole[0]:
            raise SystemExit(f"{nth}: {counted} of {whole} references")
        if counted == whole and nth > 200:
            break
        nth += 1
print("reached", nth)
"""
    done = subprocess.run([sys.executable, "-c", script, folder],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("reached")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_can_go_on(folder):
    script = """
import os, sys, threading
sys.path.insert(0, sys.argv[1])
import objects_probe as probe
stop = threading.Event()
def busy():
    n = 0
    while not stop.is_set():
        n += 1
        exec(compile("stack()", f"f{n % 50}", "exec"), {"stack": probe.stack})
threads = [threading.Thread(target=busy) for _ in range(2)]
[thread.start() for thread in threads]
bad = 0
for i in range(50):
    child = os.fork()
    if child == 0:
        os._exit(0 if probe.stack()[0] and probe.describe([])["label"] else 3)
    bad += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
stop.set()
[thread.join() for thread in threads]
raise SystemExit(bad)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, folder],
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(PUBLIC_ONLY, reason="this is the run without")
def test_r16_everything_serves_without_the_layouts(tmp_path):
    """R16, R19.  As on a version of Python that is not known, or a
    free-threaded build: public calls, less is named."""
    tests = pathlib.Path(__file__).parent
    built = subprocess.run(
        [sys.executable, tests / "objects_probe" / "build.py",
         sys.executable, tmp_path, "-DCM_LAYOUT_KNOWN=0"],
        capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         *sorted(tests.glob("test_object_*.py"))],
        capture_output=True, text=True, timeout=300,
        env=os.environ | {"CUMEM_OBJECTS_PUBLIC": "1",
                          "CUMEM_OBJECTS_PROBE": str(tmp_path)})
    assert done.returncode == 0, done.stdout
