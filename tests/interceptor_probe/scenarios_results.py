# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What gc says of itself, and what dies how."""

import gc
import weakref

from scenario_common import Node, cycles, note, probe


def results():
    gc.disable()
    for generation in (0, 1, 2, 2, 0):
        cycles(20)
        print(generation, gc.collect(generation), gc.get_count()[1:])
    gc.enable()
    cycles(30000)
    print(gc.get_stats()[2]["uncollectable"], gc.collect(), gc.garbage,
          gc.get_debug(), gc.isenabled(), gc.get_threshold())


def same_stats():
    """Automatic collections at the same moments, with the same results.
    Compared with a callback that does nothing: gc makes a dict for that."""
    seen = []
    keep = []
    for _ in range(8):  # the sentinel's first ones at rest release nothing
        gc.collect()
    for i in range(60000):
        cycles(1)
        if i % 7 == 0:
            keep.append([i])
        if i % 97 == 0:
            seen.append(gc.get_count())
    print(hash(tuple(seen)), seen[-3:])
    for stats in gc.get_stats():
        stats.pop("duration", None)
        stats.pop("candidates", None)
        print(stats)


def get_objects():
    gc.collect()
    ours = [type(o).__name__ for o in gc.get_objects()
            if type(o).__module__.startswith("cumem")]
    note("ours", ours)
    print(len(gc.get_objects(0)) < 1000)


def info_dicts():
    seen = []
    gc.callbacks.append(lambda phase, info: seen.append(
        (phase, info["generation"], info["collected"],
         info["uncollectable"])))
    gc.disable()
    cycles(3)
    gc.collect()
    cycles(2)
    gc.collect(1)
    print(seen)


def finalizer_order():
    log = []

    class Final(Node):
        def __del__(self):
            log.append(("del", self.name, self.link.name))

    refs = []
    gc.disable()
    for i in range(5):
        a, b = Final(f"a{i}"), Final(f"b{i}")
        a.link, b.link = b, a
        refs.append(weakref.ref(a, lambda r, i=i: log.append(("ref", i))))
        weakref.finalize(b, log.append, ("finalize", i))
    del a, b
    print(gc.collect(), log, [r() for r in refs])


def callback_once():
    """SCENARIOS 17: the observer's callback runs once and nothing revives."""
    log = []
    gc.disable()
    node = Node()
    node.link = node
    ref = weakref.ref(node, log.append)
    plain = weakref.ref(node)
    del node
    print(ref() is not None, gc.collect(), ref(), plain(),
          log == [ref], gc.collect(), len(log))


def callbacks_before_ours():
    """The weak reference was made before any of ours and its referent is the
    oldest garbage: ours still runs first."""
    gc.disable()
    first = []
    node = Node()
    node.link = node
    ref = weakref.ref(node, lambda r: first.append(probe.calls()[1]))
    del node
    cycles(5)
    gc.collect()
    print(len(first), ref())
    note("sink calls before the user's callback", first)


def resurrection():
    kept = []

    class Phoenix(Node):
        def __del__(self):
            kept.append(self)

    gc.disable()
    cycles(3, Phoenix)
    print(gc.collect(), len(kept), gc.collect())
    note("seen", probe.take())
    kept.clear()
    print(gc.collect(), len(kept))


def legacy_finalizer():
    """R7: what has tp_del stays in gc.garbage, and nothing of it is cleared."""
    try:
        import _testcapi
        base = _testcapi.with_tp_del
    except (ImportError, AttributeError):
        print("no tp_del in this build")
        return

    @base
    class Legacy:
        def __tp_del__(self):
            pass

    gc.disable()
    gc.garbage.append("the user's")
    a = Legacy()
    a.me, a.node = a, Node()
    a.node.link = a
    del a
    cycles(4)
    print(gc.collect(), [type(g).__name__ for g in gc.garbage],
          gc.garbage[1].node.link is gc.garbage[1])
    gc.garbage[1].me = gc.garbage[1].node.link = None
    del gc.garbage[1]
    print(gc.collect(), gc.garbage)


def user_garbage():
    gc.disable()
    mine = Node("mine")
    mine.link = mine
    gc.garbage.extend([mine, "text"])
    del mine
    cycles(3)
    print(gc.collect(), len(gc.garbage), gc.garbage[0].link.name)

    class Appends(Node):
        def __del__(self):
            gc.garbage.append(self.name)

    for i in range(3):
        cycles(1, lambda: Appends(f"x{i}"))
    print(gc.collect(), gc.garbage[1:], gc.garbage[0].name)

    class Keeps(Node):
        def __del__(self):
            gc.garbage.append(self)

    cycles(1, lambda: Keeps("kept"))
    print(gc.collect(), [type(g).__name__ for g in gc.garbage])
    print([g.name for g in gc.garbage[-2:]])

    class Clears(Node):
        def __del__(self):
            gc.garbage.clear()

    cycles(1, Clears)
    cycles(2)
    print(gc.collect(), gc.garbage, gc.get_debug())
    print(gc.collect() >= 0, gc.garbage)


def debug_flags():
    gc.disable()
    print(gc.get_debug())
    for flags in (gc.DEBUG_UNCOLLECTABLE, gc.DEBUG_SAVEALL, 0):
        gc.set_debug(flags)
        cycles(2)
        print(gc.collect(), len(gc.garbage), gc.get_debug() == flags)
        gc.garbage.clear()

    class Sets(Node):
        def __del__(self):
            gc.set_debug(gc.DEBUG_UNCOLLECTABLE)

    cycles(1, Sets)
    print(gc.collect(), gc.get_debug() == gc.DEBUG_UNCOLLECTABLE, gc.garbage)


def debug_collectable():
    """What gc prints to stderr, without addresses, is the scenario's."""
    gc.disable()
    cycles(2)
    gc.set_debug(gc.DEBUG_COLLECTABLE)
    probe.check()
    print(gc.collect())
    gc.set_debug(0)
    cycles(2)
    print(gc.collect())
