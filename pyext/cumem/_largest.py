# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Who holds most of the tensors' memory: for when it ran out.

Tensors are taken together by the line that allocated them; for the largest of these
lines one walk finds who holds them, and what would go with that.  No code of the
program runs, and nothing is kept alive.
"""

import sys

from . import _core
from ._paths import way_to

_MOST_LINES = 12
_MOST_NODES = 1 << 24
_TOLD = 3


def holders():
    """[(way, bytes)], the largest first; empty without torch, or stacks."""
    torch = sys.modules.get("torch")
    if not hasattr(torch, "Tensor"):
        return []
    sizes, groups = _by_line(torch.Tensor)
    if not groups:
        return []
    found = _core.holders(
        groups, [None] * len(groups), [0] * len(groups), True, _MOST_NODES)["holders"]  # fmt: skip
    held = {}
    for size, item in zip(sizes, found):
        if item["holder"]:
            way = way_to(item["holder"][: max(item["at"], 1) + 1])
            single = item["at"] >= len(item["holder"]) - 1  # and no container has it
            retained = None if single else item["retained"]
            held[way] = max(held.get(way, 0), retained or size)
    return sorted(held.items(), key=lambda pair: -pair[1])[:_TOLD]


def _by_line(base):
    """The bytes of each of the lines that have most, and its tensors: exact lists, which the
    walk passes over; nothing else of ours may hold a tensor then."""
    lines, seen = {}, set()
    for tensor in _core.instances(base):
        found = _core.origin(tensor)
        if found is None:
            continue
        address, size, _, site, device = found
        line = lines.setdefault((device, site), [0, []])
        line[0] += size if address not in seen else 0
        line[1].append(tensor)
        seen.add(address)
    largest = sorted(lines.values(), key=lambda line: -line[0])[:_MOST_LINES]
    return [size for size, _ in largest], [group for _, group in largest]
