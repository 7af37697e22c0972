# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Asks what holds a saved tensor while each of cumem's allocations fails in turn.

failing_ways.py LIBRARY FROM_THEN_ON STRIDE: as failing_walk.py.
"""

import ctypes
import sys
import weakref

import torch

import cumem

library = sys.argv[1]
from_then_on, stride = map(int, sys.argv[2:])
fail_at = ctypes.CDLL(library).fail_malloc_at
fail_at.argtypes = [ctypes.c_long, ctypes.c_int]
fail_at.restype = ctypes.c_long
weight = torch.randn(4, requires_grad=True)
losses = []


def make():
    hidden = torch.randn(4)
    total = hidden * weight
    for _ in range(300):
        total = total + 1.0
    losses.append(total.sum())
    return weakref.ref(hidden)


def ask():
    try:
        (path,) = cumem.why_alive(hidden(), max_paths=1)
    except MemoryError:
        return None
    return [edge for _, edge in path.steps]


hidden = make()
whole = ask()
assert whole[:4] == ["", ".losses", "[0]", "grad_fn"] and whole[-1] == "saved", whole
fail_at(1 << 40, 0)
ask()
assert fail_at(-1, 0) > 50
nth = 0
while True:
    fail_at(nth, from_then_on)
    found = ask()
    done = fail_at(-1, 0) <= nth
    assert ask() == whole, nth
    if done:
        break
    nth += stride
assert found == whole
losses.clear()
assert hidden() is None
print("failed", nth)
