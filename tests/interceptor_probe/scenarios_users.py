# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What a user may do to gc.callbacks, and an observer in its stop."""

import gc
import sys
import threading
import weakref

from scenario_common import HOOKED, MODE, Node, cycles, noop, note, probe


def callbacks_cleared():
    """In the midst of a collection: no stop will come."""

    class Clears(Node):
        def __del__(self):
            gc.callbacks.clear()

    gc.disable()
    cycles(2, Clears)
    cycles(2)
    print(gc.collect(), gc.callbacks, gc.get_debug(), gc.garbage)
    note("counts", probe.counts())
    cycles(2)
    print(gc.collect(), gc.garbage)


def callbacks_reordered():
    """What others insert, remove and restore."""
    gc.disable()
    others = []
    gc.callbacks.insert(0, lambda phase, info: others.append(phase))
    kept = gc.callbacks[:]
    cycles(3)
    print(gc.collect())
    gc.callbacks.clear()
    cycles(3)
    print(gc.collect())
    gc.callbacks[:] = kept
    cycles(3)
    print(gc.collect(), others, gc.garbage, gc.get_debug())


def weak_references_to_ours():
    """Of a user who holds all objects for a moment, with and without a callback."""
    gc.disable()
    kept, called = [], []

    def refer():
        for one in gc.get_objects():
            if type(one).__name__ == "gc_sentinel":
                kept.extend([weakref.ref(one), weakref.ref(one, called.append),
                             weakref.ref(one, called.append)])

    for turn in range(9):
        refer()
        if turn == 4:
            kept.clear()
        cycles(3)
        print(gc.collect(turn % 3), gc.garbage)
    note("referred", len(kept))
    note("called", len(called))


def lost_stop():
    """Another callback takes ours out at start and puts it back later."""
    gc.disable()
    taken = []

    def thief(phase, info):
        if phase == "start" and not taken:
            taken.append(gc.callbacks[0])
            gc.callbacks[:] = [thief]

    gc.callbacks.append(thief)
    cycles(3)
    print(gc.collect())
    gc.callbacks[:] = taken if MODE != "off" else []
    for _ in range(12):
        cycles(3)
        gc.collect()
    print(len(gc.garbage), len([o for o in gc.get_objects()
                                if type(o) is Node]))
    note("counts", probe.counts())


def by_hand():
    """Our callable and the sentinel's own parts, called by a user."""
    gc.disable()
    hooks = list(gc.callbacks)
    info = {"generation": 0, "collected": "no"}
    for hook in hooks:
        for arguments in ((), ("start",), ("start", {}), ("stop", {}),
                          ("stop", info), ("start", info), ("stop", info),
                          (1, 2), ("start", {"generation": 9}),
                          ("start", {"generation": "0"}), ("stop", [])):
            try:
                hook(*arguments)
            except TypeError:
                pass
    cycles(3)
    print(gc.collect(), gc.garbage, gc.get_debug())

    class Calls(Node):
        def __del__(self):
            for hook in hooks:
                hook("start", info)
                hook("stop", info)
                hook("stop", info)

    cycles(1, Calls)
    cycles(3)
    print(gc.collect(), gc.garbage, gc.get_debug())
    for o in gc.get_objects():
        for ref in weakref.getweakrefs(o):
            if "gc_waker" in str(type(ref.__callback__)):
                ref.__callback__(ref)
    cycles(3)
    print(gc.collect(), gc.garbage, gc.get_debug())


def remove_inside():
    """The observer is removed by a finalizer, and by its own stop."""
    gc.disable()

    class Removes(Node):
        def __del__(self):
            probe.remove()

    cycles(1, Removes)
    cycles(3)
    print(gc.collect(), gc.garbage, gc.get_debug())
    if HOOKED:
        probe.install(MODE, None, lambda *_: probe.remove())
    cycles(3)
    print(gc.collect(), gc.garbage, gc.get_debug())
    if HOOKED:
        probe.install(MODE, probe.remove)
    cycles(3)
    print(gc.collect(), gc.garbage, gc.get_debug())
    node = Node()
    node.link = node
    if HOOKED:
        probe.install(MODE)
    ref = weakref.ref(node, lambda r: probe.remove())
    del node
    cycles(3)
    print(gc.collect(), ref(), gc.garbage, gc.get_debug(),
          [c for c in gc.callbacks if c is not noop])
    note("live", probe.live())


def remove_before_other_guards():
    """By a weak reference's callback, in a collection of all generations: those of
    the younger ones have been found, and wait to be called.  (gc counts the weak
    references that go then as collected.)"""
    gc.disable()
    refs, called = [], []

    def removed(ref):
        called.append(ref)
        if HOOKED:
            probe.remove()

    def ring():
        node = Node()
        node.link = node
        refs.append(weakref.ref(node, removed))
        return node

    for _ in range(3):
        called.clear()
        if HOOKED:
            probe.install(MODE)
        for generation in (0, 1, 2, 0):
            cycles(3)
            gc.collect(generation)
        oldest = ring()
        gc.collect()
        older = ring()
        gc.collect(0)
        young = ring()
        del oldest, older, young
        cycles(3)
        gc.collect()
        print(gc.garbage, gc.get_debug(), len(called))
        cycles(3)
        print(gc.collect(), [c for c in gc.callbacks if c is not noop])
    note("live", probe.live())


def install_often():
    gc.disable()
    names = {"sentinel", "saveall"}
    gc.collect()
    for _ in range(300):
        for name in names if HOOKED else ():
            probe.install(name)
            probe.remove()
    cycles(2)
    print(gc.collect(), [c for c in gc.callbacks if c is not noop],
          gc.garbage, gc.get_debug())
    note("live", probe.live())


def raising_stop():
    """R3: what an observer raises goes to sys.unraisablehook only."""
    unraisable = []
    sys.unraisablehook = lambda u: unraisable.append(type(u.exc_value))

    def fails(generation, collected, seen):
        raise ValueError("from the observer")

    if HOOKED:
        probe.install(MODE, None, fails)
    gc.disable()
    cycles(3)
    try:
        print(gc.collect(), gc.garbage, gc.get_debug())
    except ValueError:
        print("raised")
    note("unraisable", [kind.__name__ for kind in unraisable])


def collecting_stop():
    """An observer that collects, allocates and starts threads."""

    def busy(generation, collected, seen):
        gc.collect()
        cycles(200)
        worker = threading.Thread(target=cycles, args=(200,))
        worker.start()
        worker.join()

    if HOOKED:
        probe.install(MODE, None, busy)
    cycles(1500)
    if HOOKED:
        probe.install(MODE)
    gc.collect()
    cycles(4)
    print(gc.collect(), gc.garbage, gc.get_debug())


def two_hooks():
    """A second observer beside the first, of each kind, removed in turn."""
    import importlib.machinery
    import importlib.util
    loader = importlib.machinery.ExtensionFileLoader(
        "interceptor_probe", probe.__file__)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    other = importlib.util.module_from_spec(spec)
    loader.exec_module(other)
    gc.disable()
    for kind in ("sentinel", "saveall"):
        for first in (probe, other):
            if HOOKED:
                other.install(kind)
                other.take()
            cycles(3)
            print(gc.collect(), gc.garbage, gc.get_debug())
            if HOOKED:
                note(f"{kind} beside", other.take())
                first.remove()
            cycles(3)
            print(gc.collect(), gc.garbage, gc.get_debug())
            if HOOKED:
                other.remove()
                probe.install(MODE)
