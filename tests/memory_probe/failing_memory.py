# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A program that cumem observes while each of its allocations fails in turn.

failing_memory.py LIBRARY warn|observe FROM_THEN_ON STRIDE: LIBRARY is
failing_malloc.c, preloaded; with FROM_THEN_ON (0 or 1) all allocations after
the failing one fail too; every STRIDE-th has its turn.  In each round cumem is imported anew, so that nothing is known
before.  What the program does must be the same in every round; what it asks
of cumem itself may raise MemoryError and nothing else.
"""

import ctypes
import gc
import logging
import sys
import tempfile
import weakref

import torch

library, way = sys.argv[1:3]
from_then_on, stride = map(int, sys.argv[3:])
fail_at = ctypes.CDLL(library).fail_malloc_at
fail_at.argtypes = [ctypes.c_long, ctypes.c_int]
fail_at.restype = ctypes.c_long
unraisable = []
sys.unraisablehook = lambda what: unraisable.append(what.exc_type)
logging.getLogger("cumem").addHandler(logging.NullHandler())
logging.getLogger("cumem").propagate = False
NEVER = 1 << 40


class Node:
    def __init__(self, log, name):
        self.log = log
        self.name = name
        self.tensor = torch.ones(64)
        self.loss = torch.ones(64, requires_grad=True).exp().sum()

    def __del__(self):
        self.log.append(self.name)


def hold_for_ever():
    """What no collector frees, for find_cycles()."""
    y = torch.ones(64, requires_grad=True) * 2
    y.register_hook(lambda grad: grad * y)


def keep_error(node):
    try:
        raise ValueError(node.name)
    except ValueError as error:
        node.error = error


def work():
    """The user's program: its answer says whatever it could notice."""
    gc.collect()  # what importing and failing left
    log = []
    first, second = Node(log, "first"), Node(log, "second")
    first.peer, second.peer = second, first
    second.call = lambda: first
    keep_error(first)
    ref = weakref.ref(first, lambda gone: log.append("gone"))
    kept = weakref.ref(second.tensor)
    del first, second
    log.append(gc.collect())
    log += [ref() is None, kept() is None, len(gc.garbage), gc.get_debug(),
            gc.isenabled(), gc.get_threshold()]
    return log


def forget_cumem():
    for name in [name for name in sys.modules if name.split(".")[0] == "cumem"]:
        del sys.modules[name]


def may_fail(call, *arguments, **named):
    try:
        return call(*arguments, **named)
    except MemoryError:
        return None


def observed(folder):
    """As a user would, on a machine that is short of memory."""
    import cumem

    handle = may_fail(cumem.observe_tensor_cycles, pages.append) \
        if way == "observe" else \
        may_fail(cumem.warn_tensor_cycles, directory=folder, min_bytes=0)
    answer = work()
    may_fail(cumem.find_cycles)
    may_fail(cumem.flush)
    again = work()
    may_fail(cumem.flush)
    may_fail(cumem.status)
    return handle, [answer, again]


def one_round(nth):
    """How many allocations of cumem's there were."""
    handle = None
    with tempfile.TemporaryDirectory() as folder:
        fail_at(nth, from_then_on)
        try:
            handle, answers = observed(folder)
        except (MemoryError, ImportError):  # of the import itself
            answers = [work()] * 2
        attempts = fail_at(-1, 0)
        if handle is not None:
            handle.remove()
    assert answers == expected, (nth, answers, expected)
    assert set(unraisable) <= {MemoryError}, (nth, unraisable)
    assert not gc.callbacks, (nth, gc.callbacks)
    forget_cumem()
    gc.collect()
    return attempts


pages = []
hold_for_ever()
gc.collect()
gc.freeze()  # torch's objects: collections are fast
expected = [work(), work()]
import cumem  # noqa: E402, F401 (its range is known from here on)

forget_cumem()
total = one_round(NEVER)
assert total > 100 and (way == "warn" or pages), (total, pages)
nth = 0
while one_round(nth) > nth:
    nth += stride
    assert nth < 4 * total
print("failed", nth)
