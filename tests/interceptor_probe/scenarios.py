# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the interceptors must not change: scenarios.py NAME.

PROBE_MODE is off, noop (a gc callback that does nothing), sentinel or
saveall.  What a scenario prints must be the same in each; what the probe saw
goes as JSON to PROBE_REPORT, with what `note` was told.
"""

import gc
import json
import os
import sys
import threading
import weakref

sys.path.insert(0, os.environ["PROBE_DIR"])
import interceptor_probe as probe  # noqa: E402  (in each mode: equal heaps)

MODE = os.environ["PROBE_MODE"]
HOOKED = MODE in ("sentinel", "saveall")
notes = {}


def note(name, value):
    notes[name] = value


class Node:
    def __init__(self, name=None):
        self.name = name
        self.link = None


def cycles(count, make=Node):
    for _ in range(count):
        a, b = make(), make()
        a.link, b.link = b, a


def install():
    if HOOKED:
        probe.install(MODE)
    elif MODE == "noop":
        gc.callbacks.insert(0, noop)


def noop(phase, info):
    pass


# What gc says of itself.

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
    for i in range(60000):
        cycles(1)
        if i % 7 == 0:
            keep.append([i])
        if i % 97 == 0:
            seen.append(gc.get_count())
    print(hash(tuple(seen)), seen[-3:])
    for stats in gc.get_stats():
        stats.pop("duration", None)
        note(f"candidates {len(notes)}", stats.pop("candidates", None))
        print(stats)


def get_objects():
    gc.collect()
    ours = [type(o).__name__ for o in gc.get_objects()
            if type(o).__module__.startswith("cumem")]
    print(ours, len(gc.get_objects(0)) < 1000)


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


# What dies, and how.

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
    print(gc.collect())
    gc.set_debug(0)
    cycles(2)
    print(gc.collect())


# Where the collector is called.

def nested():
    """3.12: the first finalizer's bytecode runs the collection that is due,
    which ends the guard; what is allocated next starts one inside this."""
    log = []
    keep = []

    class Final(Node):
        def __del__(self):
            log.append("del")
            for i in range(3000):
                keep.append([i])
                cycles(1, lambda: Node("inner"))

    gc.collect()
    cycles(50)
    cycles(1, Final)
    pairs = zip(range(5000))
    due = [*pairs]  # one instruction: the collection stays due
    gc.collect()
    print(log, len(due), len(keep))
    for _ in range(3):
        gc.collect()
    print(gc.garbage, gc.get_debug(),
          len([o for o in gc.get_objects() if type(o) is Node]))
    note("seen", probe.take())


def nested_deeply():
    """Each level's finalizer makes garbage and lets a collection fall due."""
    depth = []
    gc.collect()

    class Deep(Node):
        def __del__(self):
            if len(depth) < 24:
                depth.append(0)
                cycles(1, Deep)
                due = [*zip(range(5000))]
                gc.collect()
                del due

    cycles(1, Deep)
    due = [*zip(range(5000))]
    gc.collect()
    for _ in range(4):
        gc.collect()
    print(len(depth) > 2, gc.garbage, gc.get_debug(), len(due))


def increments():
    """3.14.0 to 3.14.4: many collections are a part of one."""
    keep = [[i] for i in range(200000)]
    for _ in range(40):
        cycles(500)
    gc.collect()
    print(gc.garbage, gc.get_debug(), len(keep))


def threads():
    keep = []

    def work(number):
        mine = [[i] for i in range(60000)]
        for _ in range(30):
            cycles(100)
        keep.append(len(mine))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    gc.collect()
    print(keep, gc.garbage, gc.get_debug())


def thread_storm():
    """R5: many threads, many collections; nothing piles up."""
    sys.setswitchinterval(1e-5)
    gc.set_threshold(50)
    made = []

    def work():
        for _ in range(400):
            cycles(10)
        made.append(1)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    gc.collect()
    print(len(made), gc.garbage, gc.get_debug())


def greenlets():
    import greenlet
    log = []
    gc.disable()

    class Final(Node):
        def __del__(self):
            if self.name:
                log.append("del")
                # Leaves the collection for the other stack, and returns.
                other.switch()

    def on_other_stack():
        log.append("here")
        back.switch()
        cycles(10)
        log.append(gc.collect())
        back.switch()

    back = greenlet.getcurrent()
    other = greenlet.greenlet(on_other_stack)
    big = [[i] for i in range(60000)]
    cycles(10)
    node = Final("x")
    node.link = node
    del node
    other.switch()
    print(gc.collect(), log, len(big))
    print(gc.collect() >= 0, gc.garbage, gc.get_debug())


def recursion_limit():
    """Automatic collections at the limit: no exception of ours shows."""
    unraisable = []
    sys.unraisablehook = lambda u: unraisable.append(type(u.exc_value))
    gc.set_threshold(1)

    def down(n):
        [[], {}]
        down(n + 1)

    for _ in range(20):
        cycles(3)
        try:
            down(0)
        except RecursionError:
            pass
    gc.set_threshold(700)
    gc.collect()
    print(unraisable, gc.garbage, gc.get_debug())


def tracing():
    events = []

    def trace(frame, event, argument):
        events.append(event)
        return trace

    def profile(frame, event, argument):
        events.append(event)

    sys.settrace(trace)
    sys.setprofile(profile)
    cycles(3)
    gc.collect()
    print(sys.gettrace() is trace, sys.getprofile() is profile)
    sys.setprofile(None)
    sys.settrace(None)
    print(events)


# What a user may do to gc.callbacks.

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


# Hostile and large heaps.

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
    cycles(5)
    print(gc.collect(), gc.get_freeze_count() > 1000)
    note("seen", probe.take())
    gc.unfreeze()
    print(gc.collect(), gc.get_freeze_count())


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


# The end of a process.

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


def main(name):
    sys.stdout.reconfigure(line_buffering=True)
    gc.collect()
    install()
    gc.collect()
    probe.take()
    try:
        globals()[name]()
    finally:
        note("counts", probe.counts()) if "counts" not in notes else None
        path = os.environ.get("PROBE_REPORT")
        if path:
            with open(path, "w") as file:
                json.dump(notes, file)


if __name__ == "__main__":
    main(sys.argv[1])
