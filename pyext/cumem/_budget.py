# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What all walks over the heap may take that growth asks for: who holds what grows, what is
a second copy of the weights.

One part in a hundred of the run's time, but for the first few, which are had at once: a
leak is to be told with its holder within ten iterations.
"""

import contextlib
import time

_FIRST = {"leak": 6, "lingering": 3, "copies": 2}
_SHARE = 100

_spent = {"count": 0, "seconds": 0.0, "longest": 0.0}
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
    """What runs within is one walk."""
    _walks[what] += 1
    started = time.perf_counter()
    try:
        yield
    finally:
        took = time.perf_counter() - started
        _spent["count"] += 1
        _spent["seconds"] += took
        _spent["longest"] = max(_spent["longest"], took)
        _state["not_before"] = time.perf_counter() + took * _SHARE


def spent():
    """Count, seconds and longest of the walks so far."""
    return dict(_spent)
