# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Who holds most of the tensors' memory: for when it ran out.

Tensors are taken together by the line that allocated them; for the largest of these
lines one walk finds who holds them, and what would go with that: what autograd keeps
behind them for a backward pass too, which no Python object stands for.  No code of
the program runs, and nothing is kept alive.
"""

import time

from . import _core, _paths

_MOST_LINES = 12
_MOST_NODES = 1 << 24
_MOST_TIME = 1.0  # seconds, for what is behind tensors
_MOST_VERTICES = 200_000  # of one tensor's graph: a second
_DEAD = "a dead cycle"  # CM_HOLDING_DEAD
_NOWHERE = 0, 0, 0, 0, ""  # small ones of the host's have no line, and may have a graph
_TOLD = 3


def holders():
    """[(way, bytes)], the largest first; empty without stacks."""
    lines = _largest(_by_line())
    if not lines:
        return []
    found = _core.holders(
        [line.tensors for line in lines], [None] * len(lines), [0] * len(lines), True, _MOST_NODES
    )["holders"]  # fmt: skip
    held = {}
    for line, item in zip(lines, found):
        way = _paths.way_to(item["holder"][: max(item["at"], 1) + 1]) if item["holder"] else _DEAD
        if not way.startswith(_DEAD):  # the scan that follows tells of those
            held[way] = max(held.get(way, 0), line.held_by(item))
    return sorted(held.items(), key=lambda pair: -pair[1])[:_TOLD]


class _Line:
    """What one line allocated: exact lists, which the walk passes over; nothing else of ours
    may hold a tensor then."""

    def __init__(self):
        self.own, self.behind, self.graphs, self.tensors = 0, 0, 0, []

    def held_by(self, item):
        """Bytes that go with a holder, as far as they are known: its share of what is behind."""
        single = item["at"] >= len(item["holder"]) - 1  # and no container has it
        share = min(1, item["through"] / max(self.graphs, 1))
        return int(((not single and item["retained"]) or self.own) + self.behind * share)


def _by_line():
    lines, seen = {}, set()
    for tensor in _core.held_tensors():
        address, size, _, site, device = _core.origin(tensor) or _NOWHERE
        line = lines.setdefault((device, site), _Line())
        line.own += size if address not in seen else 0
        line.tensors.append(tensor)
        seen.add(address)
    _add_behind(lines.values(), seen)
    return lines.values()


def _add_behind(lines, seen):
    """Each storage once, with the first line that leads to it; those of Python's objects are counted."""
    end = time.monotonic() + _MOST_TIME
    for line in sorted(lines, key=lambda line: -len(line.tensors)):
        for tensor in reversed(line.tensors):  # the newest of a chain leads to all
            if time.monotonic() > end:
                return
            new = {item[0]: item[1] for item in _behind(tensor) if not item[3] and item[0] not in seen}
            line.behind += sum(new.values())
            line.graphs += bool(new)
            seen.update(new)


def _behind(tensor):
    found = _core.autograd_behind(tensor, _MOST_VERTICES)
    return found["storages"] if found else ()


def _largest(lines):
    known = (line for line in lines if line.own + line.behind)
    return sorted(known, key=lambda line: -line.own - line.behind)[:_MOST_LINES]
