# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What all walks over the heap may take that growth asks for: who holds what grows, what is
a second copy of the weights, what lives when memory ran out.

One part in a hundred of the run's time, but for the first few, which are had at once: a
leak is to be told with its holder within ten iterations.
"""

import contextlib
import time

_FIRST = {"leak": 6, "lingering": 3, "bounded": 3, "early": 3, "copies": 2, "out of memory": 1, "end of a part": 6}
_SHARE = 100

_spent = {"count": 0, "seconds": 0.0, "longest": 0.0}
_of_memory = {"count": 0, "seconds": 0.0, "longest": 0.0, "skipped": 0}
_state = {"not_before": 0.0}
_walks = dict.fromkeys(_FIRST, 0)


def is_paid():
    """The walks so far are less than their share of the time since."""
    return time.perf_counter() >= _state["not_before"]


def allows(what):
    """Paid for, or one of the first of its kind."""
    return _walks[what] < _FIRST[what] or is_paid()


@contextlib.contextmanager
def walk(what):
    """What runs within is one walk; with those in it, where memory ran out."""
    _walks[what] += 1
    spent = _of_memory if what == "out of memory" else _spent
    started = time.perf_counter()
    try:
        yield
    finally:
        took = time.perf_counter() - started
        spent["count"] += 1
        spent["seconds"] += took
        spent["longest"] = max(spent["longest"], took)
        _state["not_before"] = max(_state["not_before"], time.perf_counter() + took * _SHARE)


@contextlib.contextmanager
def end_of_part():
    """What runs within is waited for by all walks, beside those in it."""
    _walks["end of a part"] += 1
    started = time.perf_counter()
    try:
        yield
    finally:
        now = time.perf_counter()
        _state["not_before"] = max(_state["not_before"], now + (now - started) * _SHARE)


def skip():
    """Memory ran out, and nothing looks why."""
    _of_memory["skipped"] += 1


def spent():
    """Count, seconds and longest of the walks so far that growth asked for."""
    return dict(_spent)


def spent_of_memory():
    """The same for when memory ran out, and how often nothing looked."""
    return dict(_of_memory)
