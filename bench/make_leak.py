# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Makes a leak.json of many findings: python bench/make_leak.py 10000 OUT

Each is a module with a hook on itself, ten objects and three storages, all
with fingerprints of their own: the worst a report can be.  --folded makes one
finding that was seen so many times, which is how equal cycles are written.
"""

import argparse
import json
import random

KINDS = [("m.Net", "object"), ("dict", "container"), ("dict", "container"),
         ("function", "function"), ("tuple", "container"), ("cell", "cell"),
         ("list", "container")]
LABELS = ["__dict__", "['_forward_hooks']", "[0]", "__closure__",
          "cell self", "cell self"]
PLACES = 40  # files and lines that findings share


def frame(number, function, library=False):
    found = {"filename": f"/job/{'site-packages/' * library}part{number}.py",
             "line": 10 + number, "name": function,
             "source": f"        self.value{number} = make(self, x)"}
    if library:
        return found | {"library": True}
    return found | {"before": "    def forward(self, x):\n        x = x + 1",
                    "after": "        return x\n"}


def sites():
    return [{"id": i + 1, "user_frame": 2,
             "frames": [frame(i, "Linear.forward", True),
                        frame(i + 1, "Module._call_impl", True),
                        frame(i, "Net.forward"), frame(i + 1, "main")]}
            for i in range(PLACES)]


class Document:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.vertices, self.edges, self.storages, self.cycles = [], [], [], []

    def vertex(self, annotation, type_, kind, size, **more):
        self.vertices.append({"id": len(self.vertices) + 1,
                              "annotation": annotation, "type": type_,
                              "kind": kind, "bytes": size, "site": None}
                             | more)
        return len(self.vertices)

    def edge(self, label, tail, head, **more):
        self.edges.append({"id": len(self.edges) + 1, "annotation": label,
                           "tail": tail, "head": head, "kind": "python"}
                          | more)
        return len(self.edges)

    def storage(self, holder, label, size):
        number = len(self.storages) + 1
        tensor = self.vertex(
            f"Tensor [{size // 4096}, 1024] float32 cuda:0 {size} B",
            "torch.Tensor", "tensor", size, storage=number,
            site=1 + number % PLACES)
        self.edge(label, holder, tensor)
        self.storages.append({
            "id": number, "device": "cuda:0", "bytes": size,
            "address": hex(0x7f0000000000 + number * size),
            "block_bytes": size, "stream": "0x0", "site": 1 + number % PLACES,
            "category": "", "names": [], "vertices": [tensor]})
        return number

    def cycle(self, count=1):
        names = [(f"m.Net{len(self.cycles) % 97}", "object")] + KINDS[1:]
        ring = [self.vertex(type_, type_, kind, 64) for type_, kind in names]
        for label, tail, head in zip(LABELS, ring, ring[1:6] + ring[:1]):
            cut = self.edge(label, tail, head)
        place = frame(len(self.cycles) % PLACES, "Net.__init__")
        self.edges[-1]["made_at"] = [place | {"certain": True}]
        self.edge(".acts", ring[0], ring[6])
        size = self.random.randrange(1, 64) << 20
        payload = [self.storage(ring[6], f"[{i}]", size) for i in range(3)]
        self.cycles.append({
            "fingerprint": f"{self.random.getrandbits(64):016x}",
            "class": "collectable", "vertices": ring[:6], "payload": payload,
            "also_held_elsewhere": [], "shared_with": [],
            "bytes_each": 3 * size, "count": count,
            "peak_bytes": 3 * size * count, "total_bytes": 3 * size * count,
            "first_iteration": 1, "last_iteration": 9, "time": 1.7e9,
            "trigger": "gc", "cut": [cut], "rule": "hook_captures_owner",
            "advice": "keep the handle and call handle.remove(), or capture "
                      "weakref.ref(self) in the hook", "library": None})

    def as_dict(self):
        return {
            "format": "cumem-leak", "version": 1, "pid": 1, "rank": None,
            "world_size": None, "host": "bench", "python": "3.12.1",
            "torch": "2.13.0", "cumem": "0", "iteration": 9,
            "interceptor": "sentinel", "allocator_hook": "",
            "lost": {"events": 0, "nodes": 0, "reason": ""},
            "devices": [{"name": "cuda:0", "total": 1 << 40, "allocated": 0,
                         "reserved": 0, "peak_allocated": 1 << 39,
                         "dead_peak": 1 << 38, "dead_peak_iteration": 9}],
            "sites": sites(), "vertices": self.vertices, "edges": self.edges,
            "storages": self.storages, "cycles": self.cycles, "growth": [],
            "collections": []}


def make(count, folded=False, seed=0):
    document = Document(seed)
    for _ in range(1 if folded else count):
        document.cycle(count if folded else 1)
    return document.as_dict()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("out")
    parser.add_argument("--folded", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with open(options.out, "w") as file:
        json.dump(make(options.count, options.folded, options.seed), file,
                  separators=(",", ":"))


if __name__ == "__main__":
    main()
