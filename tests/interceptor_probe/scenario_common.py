# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What every scenario uses: the probe, objects in cycles, and notes.

PROBE_MODE is off, noop (a gc callback that does nothing), sentinel (heard),
rest (the sentinel, at rest whenever it can be), stops (but for those of
collections that found something), turns (as long as nothing is found) or
saveall.
"""

import gc
import os
import sys

sys.path.insert(0, os.environ["PROBE_DIR"])
import interceptor_probe as probe  # noqa: E402  (in each mode: equal heaps)

MODE = os.environ["PROBE_MODE"]
HOOKED = MODE in ("sentinel", "rest", "stops", "turns", "saveall")
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


def noop(phase, info):
    pass


def install():
    if HOOKED:
        probe.install(MODE)
    elif MODE == "noop":
        gc.callbacks.insert(0, noop)
