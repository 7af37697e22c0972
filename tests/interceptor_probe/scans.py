# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The read-only scan against what a collection does: scans.py NAME.

The truth is gc.DEBUG_SAVEALL: after gc.collect(), gc.garbage is what the
collector found dead.  Each function asserts.
"""

import collections
import functools
import gc
import os
import random
import sys
import types
import weakref

sys.path.insert(0, os.environ["PROBE_DIR"])
import interceptor_probe as probe  # noqa: E402


class Node:
    pass


class Tensor:
    pass


def dead():
    """What a collection would free: first said by the scan, then done."""
    _, free, _, negative, by_heads = probe.scan()
    assert negative == 0
    assert by_heads == ("UNKNOWN" not in os.environ["PROBE_DIR"])
    said = collections.Counter(free)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    done = collections.Counter(type(o).__name__ for o in gc.garbage)
    clear_garbage()
    return short(said), done


def short(counter):
    """Type names as type(x).__name__ says them."""
    result = collections.Counter()
    for name, count in counter.items():
        result[name.rsplit(".")[-1]] += count
    return result


def clear_garbage():
    for o in gc.garbage:
        if isinstance(o, (Node, Tensor)):
            o.__dict__.clear()
        elif isinstance(o, (list, dict)):
            o.clear()
    gc.garbage.clear()
    gc.collect()


def random_graphs():
    for seed in range(60):
        r = random.Random(seed)
        kinds = [Node, lambda: [], lambda: {}, Tensor]
        made = [r.choice(kinds)() for _ in range(r.randrange(2, 400))]
        for _ in range(int(len(made) * r.uniform(0.5, 3))):
            link(r.choice(made), r.choice(made), r)
        keep = r.sample(made, r.randrange(0, 3))
        del made
        said, done = dead()
        assert said == done, (seed, said, done)
        del keep


def many_references():
    """Counts around what a trial's byte holds: a hub that n others refer to, which
    nothing else does, or one local, or one of the n that is held."""
    for n in (*range(58, 68), 254, 255, 256, 257, 1_000, 70_000):
        for held in ("nothing", "hub", "one"):
            hub = Node()
            hub.all = [Node() for _ in range(n)]
            for node in hub.all:
                node.hub = hub
            keep = {"nothing": None, "hub": hub, "one": hub.all[-1]}[held]
            del hub, node
            said, done = dead()
            assert said == done, (n, held, said, done)
            assert said["Node"] == (n + 1 if held == "nothing" else 0), (n, held)
            keep = None  # noqa: F841
            gc.collect()


def many_hubs():
    """More of them than the table of large counts begins with, met by turns."""
    hubs = [Node() for _ in range(500)]
    hubs[0].spokes = [[hub for hub in hubs for _ in range(2)] for _ in range(50)]
    for hub in hubs:
        hub.first = hubs[0]
    del hub
    said, done = dead()
    assert said == done == collections.Counter()
    del hubs
    said, done = dead()
    assert said == done and said["Node"] == 500 and said["list"] == 51, said


def link(a, b, r):
    if isinstance(a, list):
        a.append(b)
    elif isinstance(a, dict):
        a[r.random()] = b
    else:
        setattr(a, f"a{r.randrange(1000)}", b)


def generator(box):
    tensor, other = Tensor(), [box]
    yield tensor, other


async def coroutine(box):
    tensor = Tensor()
    await Suspended(box)
    return tensor


class Suspended:
    def __init__(self, box):
        self.box = box

    def __await__(self):
        yield self.box


async def async_generator(box):
    tensor = Tensor()
    await Suspended(box)
    yield tensor


def suspend(count):
    for _ in range(count):
        box = []
        it = generator(box)
        next(it)
        box.append(it)
        box = []
        it = coroutine(box)
        it.send(None)
        box.append(it)
        box = []
        it = async_generator(box)
        step = it.asend(None)
        step.send(None)
        box.append((it, step))


def suspended():
    """Generators, coroutines and async generators that hold themselves."""
    gc.disable()
    suspend(200)
    keep = []
    live = generator(keep)
    next(live)
    keep.append(live)
    _, free, _, negative, _ = probe.scan()
    said = short(free)
    assert said["Tensor"] == 600 and negative == 0, (said, negative)
    assert said["generator"] >= 200 and said["coroutine"] == 200, said
    gc.collect()
    said = short(probe.scan()[1])
    assert said["Tensor"] == 0 and said["generator"] == 0, said
    assert live.gi_frame is not None


def kinds_of_cycles():
    def pair():
        a, b = Node(), Node()
        a.b, b.a, a.t = b, a, Tensor()

    def closure():
        node = Node()
        node.t = Tensor()
        node.call = lambda: node

    def bound():
        node = Node()
        node.t = Tensor()
        node.call = node.__init__
        node.mine = types.MethodType(pair, node)

    def partial():
        node = Node()
        node.t = Tensor()
        node.call = functools.partial(pair, node)

    def exception():
        t = Tensor()
        try:
            raise ValueError
        except ValueError as error:
            kept = error
        return None if kept else t

    def frame():
        t = Tensor()
        f = sys._getframe()
        return None if f else t

    def class_in_function():
        class Local:
            t = Tensor()

    def recursive():
        t = Tensor()

        def again():
            return again, t

    for make in (pair, closure, bound, partial, exception, frame,
                 class_in_function, recursive):
        gc.collect()
        for _ in range(10):
            make()
        said = short(probe.scan()[1])
        assert said["Tensor"] == 10, (make, said)
        gc.collect()
        assert short(probe.scan()[1])["Tensor"] == 0, make
    said, done = None, None
    for make in (pair, closure, partial, class_in_function):
        make()
    said, done = dead()
    for counter in said, done:
        del counter["tuple"]  # a collection untracks some
    assert said == done, (said, done)


def live_ones():
    """Held from a local, a global, a C object, a running frame."""
    import _queue
    node = Node()
    node.t, node.me = Tensor(), node
    queue = _queue.SimpleQueue()
    queued = Node()
    queued.me, queued.t = queued, Tensor()
    queue.put(queued)
    del queued
    weak = weakref.ref(node)
    running = []

    def inside():
        t = Tensor()
        running.append(probe.scan()[1])
        yield t

    it = inside()
    next(it)
    assert "Tensor" not in running[0], running
    said = probe.scan()[1]
    assert "Tensor" not in said and "Node" not in said, said
    assert weak() is node and queue.qsize() == 1


def changes_nothing():
    log = []

    class Final:
        def __del__(self):
            log.append("del")

    final = Final()
    final.me = final
    ref = weakref.ref(final, log.append)
    del final
    count = sys.getrefcount(ref())
    gc.disable()
    gc.callbacks.append(lambda phase, info: log.append(phase))
    before = (gc.get_count()[1:], gc.get_stats(), len(gc.get_objects()))
    for _ in range(5):
        assert probe.scan()[1]["Final"] == 1
    after = (gc.get_count()[1:], gc.get_stats(), len(gc.get_objects()))
    assert before[:2] == after[:2] and abs(before[2] - after[2]) < 8
    assert log == [] and ref() is not None and not gc.isenabled()
    assert sys.getrefcount(ref()) == count
    gc.callbacks.clear()
    gc.enable()
    probe.scan()
    assert gc.isenabled() and probe.live() == 0


def frozen_classes():
    gc.disable()
    gc.collect()

    def pair(name=None):
        a, b = Node(), Tensor()
        a.b, b.a = b, a
        return a

    for _ in range(5):
        pair()
    bridge = pair()
    gc.freeze()
    how, count = probe.frozen()
    assert how == "seen" and count == gc.get_freeze_count() > 1000
    for _ in range(3):
        pair()
    bridge.b.new = [[]]  # made later, kept by what is frozen
    bridge.b.new.append(bridge.b.new)
    del bridge
    _, free, frozen, _, _ = probe.scan()
    assert free["Node"] == 3 and frozen["Node"] == 6, (free, frozen)
    assert frozen["list"] == 2 and "list" not in free, (free, frozen)
    assert gc.collect() == 6
    gc.unfreeze()
    assert probe.scan()[1]["Node"] == 6 and not probe.scan()[2]
    assert gc.collect() >= 12


def inside_collections():
    """From a gc callback, a finalizer, a weak reference's callback; ours is
    never named."""
    seen = []

    def look(*_):
        seen.append(probe.scan()[1])

    class Final(Node):
        def __del__(self):
            look()

    for kind in ("sentinel", "saveall"):
        probe.install(kind)
        gc.callbacks.append(look)
        node = Final()
        node.me = node
        ref = weakref.ref(node, look)
        del node
        gc.collect()
        gc.callbacks.remove(look)
        probe.remove()
        assert ref() is None
    assert len(seen) == 8
    for said in seen:
        assert not [name for name in said if "gc_" in name], said


def no_memory():
    gc.disable()
    for kept_failing in (False, True):
        failures = 0
        for nth in range(1000):
            probe.fail_at(nth, kept_failing)
            try:
                probe.scan()
                failed = False
            except MemoryError:
                failed = True
            probe.fail_at(-1, False)
            assert probe.live() == 0
            failures += failed
            if not failed:
                break
        assert 0 < failures < 900, failures


def half_built():
    """R18: a tuple that is tracked with empty slots, seen by a scan."""
    seen = []

    def items():
        yield Node()
        seen.append(probe.scan()[0])
        yield Node()

    made = tuple(items())
    assert len(made) == 2 and seen[0] > 0
    assert "Node" not in probe.scan()[1]


def untracked():
    """Dicts and tuples that gc has untracked, strings, numbers: reached, not
    listed."""
    node = Node()
    node.me = node
    node.data = {"a": 1, "b": (1, 2, "x")}
    gc.collect()
    del node
    said = short(probe.scan()[1])
    assert said["Node"] == 1 and said["str"] == 0, said
    import ctypes
    holder = ctypes.py_object(Node())
    holder.value.me = holder.value
    assert "Node" not in short(probe.scan()[1]) \
        or short(probe.scan()[1])["Node"] == 1
    assert holder.value.me is holder.value


if __name__ == "__main__":
    gc.collect()
    globals()[sys.argv[1]]()
