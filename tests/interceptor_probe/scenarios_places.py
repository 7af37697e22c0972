# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Where the collector is called: in itself, on threads and stacks."""

import gc
import sys
import threading

from scenario_common import Node, cycles, note, probe


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
