# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Hostile and large heaps, failing memory, and the end of a process."""

import gc
import os
import sys
import threading
import weakref

from scenario_common import HOOKED, MODE, Node, cycles, note, probe


class Hostile:
    """R1, R2: every slot counts its calls."""

    calls = []

    def _called(self, *_):
        Hostile.calls.append(1)
        raise RuntimeError("user code ran")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __iter__ = _called
    __getattr__ = __bool__ = __dir__ = __contains__ = __getitem__ = _called
    __call__ = __sizeof__ = __format__ = __reduce__ = _called

    @property
    def __class__(self):
        Hostile.calls.append(1)
        return int


class HostileDict(dict):
    items = keys = values = __iter__ = __len__ = Hostile._called
    __getitem__ = Hostile._called


class HostileList(list):
    __iter__ = __len__ = __getitem__ = Hostile._called


def hostile():
    gc.disable()
    for _ in range(10):
        a = Hostile()
        b, c = HostileDict(), HostileList()
        object.__setattr__(a, "x", b)
        dict.__setitem__(b, "k", c)
        list.append(c, a)
        list.append(c, weakref.proxy(a))
        list.append(c, weakref.ref(a))
    del a, b, c
    scanned = probe.scan()[1]
    note("scanned", scanned)
    print(gc.collect(), len(Hostile.calls), gc.garbage)
    note("seen", probe.take())


def frozen():
    gc.disable()
    cycles(10)
    gc.freeze()
    probe.check()
    cycles(5)
    print(gc.collect(), gc.get_freeze_count() > 1000)
    note("seen", probe.take())
    gc.unfreeze()
    print(gc.collect(), gc.get_freeze_count())


def all_held():
    """Whoever holds all objects holds the sentinel's too, at rest."""
    gc.disable()
    kept = gc.get_objects()
    print(gc.collect(0), gc.collect(1), gc.collect(), len(kept) > 1000)
    cycles(5)
    print(gc.collect(0))
    del kept
    probe.check()
    probe.take()
    seen = []
    for generation in (0, 1, 2):
        cycles(5)
        print(gc.collect(generation))
        seen.append(probe.take())
    note("seen", seen)


def long_list():
    """R17: ten million objects, each referring to the next."""
    gc.disable()
    node = last = []
    for _ in range(10_000_000):
        node = [node]
    last.append(node)
    del node, last
    note("scanned", probe.scan()[1].get("list"))
    print(gc.collect(), gc.garbage)


def deep_tuple():
    """R17: a million tuples in each other, on a small C stack."""

    def work():
        gc.disable()
        box = []
        inner = (box,)
        for _ in range(1_000_000):
            inner = (inner,)
        box.append(inner)
        del box, inner
        note("scanned", probe.scan()[1].get("tuple"))
        print(gc.collect(), gc.garbage)

    threading.stack_size(1 << 20)
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()


def no_memory():
    """Each allocation of ours fails in turn: nothing changes for the user."""
    gc.disable()
    sys.setswitchinterval(100)
    missed = 0
    for kept_failing in (False, True):
        for nth in range(40):
            cycles(500)
            probe.fail_at(nth, kept_failing)
            collected = gc.collect()
            if HOOKED:
                counts = probe.counts()["no_memory"]
            probe.fail_at(-1, False)
            if collected != 1000 or gc.garbage or gc.get_debug():
                print("changed at", nth, collected, len(gc.garbage))
            missed += counts if HOOKED else 0
            if HOOKED:
                probe.install(MODE)
            while gc.collect():
                pass
    print("done")
    note("missed", missed)
    if HOOKED:
        probe.remove()
    note("live", probe.live())


def exit_code():
    cycles(100)
    sys.exit(3)


def exit_error():
    cycles(100)
    raise ValueError("the user's own")


def exit_at_once():
    cycles(100)
    print("leaving", flush=True)
    os._exit(5)


def exit_with_threads():
    def work():
        while True:
            cycles(10)

    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    cycles(1000)
    print("main is over")


def exit_in_cycle():
    """Module globals and finalizers at shutdown."""

    class Final(Node):
        def __del__(self):
            print("finalized", self.name)

    global survivor
    survivor = Final("global")
    survivor.link = survivor
    cycles(1, Final)
    import atexit
    atexit.register(gc.collect)


def fork():
    gc.disable()
    cycles(3)
    pid = os.fork()
    cycles(2)
    collected = gc.collect()
    if pid == 0:
        os._exit(collected if not gc.garbage else 99)
    print(collected, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def sub_interpreters():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    code = f"""
import sys, gc
sys.path.insert(0, {os.environ['PROBE_DIR']!r})
import interceptor_probe as probe
if {HOOKED}:
    probe.install({MODE!r})
class Node: pass
def cycles(n):
    for _ in range(n):
        a, b = Node(), Node()
        a.link, b.link = b, a
gc.disable()
cycles(3)
result = gc.collect(), gc.garbage, gc.get_debug()
assert result == (6, [], 0), result
seen = probe.take() if {HOOKED} else {{"Node": 6}}
assert seen.get("Node") == 6, seen
"""
    gc.disable()
    for last in ("", "probe.remove()\n", "cycles(3)\n"):
        made = interpreters.create()
        failed = interpreters.run_string(made, code + last)
        interpreters.destroy(made)
        cycles(2)
        print(failed, gc.collect(), gc.garbage, gc.get_debug())
    note("seen", probe.take())
