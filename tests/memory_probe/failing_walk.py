# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Asks what holds objects while each of cumem's allocations fails in turn.

failing_walk.py LIBRARY FROM_THEN_ON STRIDE: as failing_memory.py.  The answer
is whole, or one with fewer words, or a MemoryError; afterwards it is whole.
"""

import ctypes
import gc
import sys

import cumem
from cumem import _core

library = sys.argv[1]
from_then_on, stride = map(int, sys.argv[2:])
fail_at = ctypes.CDLL(library).fail_malloc_at
fail_at.argtypes = [ctypes.c_long, ctypes.c_int]
fail_at.restype = ctypes.c_long


class Thing:
    pass


class Owner:
    kept = {}

    def fill(self, number):
        self.things = [Thing() for _ in range(number)]
        Owner.kept[number] = self.things


def make():
    owner = Owner()
    owner.fill(9)
    box = owner.things
    return owner, lambda: box


owner, function = make()
chain = None
for _ in range(200):
    chain = [chain, Thing()]


def links():
    link = chain
    while link is not None:
        yield link[1]
        link = link[0]


def may_fail(call):
    try:
        return call()
    except MemoryError:
        return None


def ask():
    ways = may_fail(lambda: cumem.why_alive(owner.things[4]))
    told = may_fail(lambda: _core.holders([list(owner.things), list(links())],
                                          [None, "other"], [0, 0], True, 10**7))
    counts = told and [(each["targets"], each["unreached"]) for each in told["holders"]]
    return ways and len(ways), counts


ask()
gc.collect()
counts = [sys.getrefcount(each) for each in (owner, owner.things, function, chain, Thing)]
whole = ask()
assert whole == (1, [(9, 0), (200, 0)]), whole
fail_at(1 << 40, 0)
ask()
total = fail_at(-1, 0)
assert total > 50, total
nth = 0
while True:
    fail_at(nth, from_then_on)
    found = ask()
    done = fail_at(-1, 0) <= nth
    assert found[0] in (None, 1), (nth, found)
    assert ask() == whole, nth
    assert gc.isenabled()
    if done:
        break
    nth += stride
gc.collect()
assert counts == [sys.getrefcount(each)
                  for each in (owner, owner.things, function, chain, Thing)]
print("failed", nth)
