# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Case c of allocations.py: training, and whose each allocated byte is.

A block is generated when torch.compile wrote the nearest file that is not torch's;
else the user's when its stack has a file of neither torch, the standard library, an
installed package nor this bench (allocations_models.py is the user's); else a
library's when it has one of a package other than torch.
"""

import collections
import os
import sysconfig

import allocations_models
import children
import measure

UNKNOWN = 0.01
LOOKED_AT = {"cumem": (0, 1, 2, 10, 49), "torch": (0, 2)}
LARGEST = 8


# -- whose ------------------------------------------------------------------

class Files:
    """Which kind of code a file is."""

    def __init__(self, torch):
        paths = sysconfig.get_paths()
        self._torch = os.path.dirname(torch.__file__) + os.sep
        self._standard = tuple({paths["stdlib"] + os.sep, paths["platstdlib"] + os.sep})
        self._known = {}

    def kind(self, path):
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = self._kind(path)
        return found

    def _kind(self, path):
        cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")  # set by torch, too, as it compiles
        if "torchinductor_" in path or path.startswith("<eval_with_key") \
                or cache and path.startswith(os.path.join(cache, "")):
            return "generated"
        if path == allocations_models.__file__:
            return "user"
        if path.startswith(f"{measure.HERE}{os.sep}"):
            return "bench"
        if path.startswith(self._torch):
            return "torch"
        if "site-packages" in path or "dist-packages" in path:
            return "library"
        if path.startswith("<") or path.startswith(self._standard):
            return "standard"
        return "user"

    def of_stack(self, frames):
        """The kind of a block, and its nearest frame that is not torch's."""
        kinds = [self.kind(path) for path, _, _ in frames]
        nearest, its_kind = next(((frame, kind) for frame, kind in zip(frames, kinds)
                                  if kind in ("user", "library", "generated")), (None, None))
        if its_kind == "generated":
            return its_kind, nearest
        for kind in ("user", "library", "torch"):
            if kind in kinds:
                return kind, nearest or frames[0]
        return "none", None


def _blocks_of_cumem():
    from cumem import _core

    return [(size, frames, awaited)
            for _, size, device, _, _, awaited, frames in _core.blocks() if device == 0]


def _blocks_of_torch():
    import torch

    return [(block["size"],
             [(frame["filename"], frame["line"], frame["name"])
              for frame in block.get("frames") or ()], False)
            for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]
            if block["state"] == "active_allocated"]


class Look:
    """Every byte that is allocated now, by kind; the last look's largest sites."""

    def __init__(self, torch, tool):
        self._allocated = torch.cuda.memory_allocated
        self._blocks = _blocks_of_cumem if tool == "cumem" else _blocks_of_torch
        self._files = Files(torch)
        self.points, self.sites = [], []

    def take(self, iteration, point):
        allocated = self._allocated(0)
        kinds, sites = collections.Counter(), collections.defaultdict(lambda: [0, 0])
        blocks = self._blocks()
        for size, frames, awaited in blocks:
            kind, frame = self._files.of_stack(frames)
            kinds[kind] += size
            site = sites[(awaited, kind, frame)]
            site[0] += size
            site[1] += 1
        kinds["unseen"] = max(0, allocated - sum(kinds.values()))
        waited = [size for size, _, awaited in blocks if awaited]
        self.points.append({
            "iteration": iteration, "point": point, "bytes": allocated,
            "seen": sum(size for size, _, _ in blocks), "blocks": len(blocks),
            "kinds": dict(kinds), "awaited_bytes": sum(waited),
            "awaited_blocks": len(waited)})
        if point == "after backward" or not self.sites:
            self.sites = [
                {"bytes": size, "count": count, "awaited": awaited, "kind": kind,
                 "where": f"{kind}: {_said(frame)}"}
                for (awaited, kind, frame), (size, count) in
                sorted(sites.items(), key=lambda item: -item[1][0])[:LARGEST]]


def _said(frame):
    if frame is None:
        return "no stack"
    path, line, name = frame
    return f"{os.sep.join(path.split(os.sep)[-2:])}:{line} {name}"


def _unknown(point):
    """Share of the bytes without a line of the user's, a package's or a generated file's."""
    named = sum(point["kinds"].get(kind, 0) for kind in ("user", "library", "generated"))
    return 1 - named / point["bytes"] if point["bytes"] else 1.0


# -- the loop ---------------------------------------------------------------

def train(spec):
    import torch

    checks = children.Checks()
    handle = None
    if spec["tool"] == "cumem":
        import cumem

        handle = cumem.observe_tensor_cycles(lambda page: None)
    torch.cuda.init()
    if spec["tool"] == "torch":
        torch.cuda.memory._record_memory_history("all", context="all", stacks="python",
                                                 max_entries=10_000)
    look = Look(torch, spec["tool"])
    # Neither torchvision nor a compiler is everywhere: that is no fault of ours.
    optional = spec["model"] != "transformer"
    with checks.part("trains"):
        _train(torch, spec, look)
    if checks.rows and optional and not look.points:
        checks.rows[0]["holds"] = None
    answer = {"rows": checks.rows, "points": look.points, "sites": look.sites}
    if handle is not None:
        answer["hook"] = cumem.status()["allocator_hook"]
        _judge(look.points, answer["hook"], checks, spec["model"] != "compiled")
        handle.remove()
    return answer


def _train(torch, spec, look):
    program = allocations_models.Program(torch, spec["model"])
    last = spec["iterations"] - 1
    for iteration in range(spec["iterations"]):
        looked = iteration in LOOKED_AT[spec["tool"]] or iteration == last
        loss = program.forward()
        if looked:
            look.take(iteration, "after forward")
        program.backward(loss)
        if looked:
            look.take(iteration, "after backward")
        program.step()
        if looked:
            look.take(iteration, "after step")


def _judge(points, hook, checks, engine_waits):
    """`engine_waits`: not where backward's thread runs Python of its own."""
    if not points:
        return
    worst = max(points, key=_unknown)
    checks.expect("bytes without a line that allocated them", f"<= {UNKNOWN:.0%}",
                  f"{_unknown(worst):.3%} at worst (iteration {worst['iteration']}, "
                  f"{worst['point']}: {worst['kinds']})", _unknown(worst) <= UNKNOWN)
    differs = [point for point in points if point["seen"] != point["bytes"]]
    checks.expect("bytes are memory_allocated() at each point", f"{len(points)} equal",
                  f"{len(points) - len(differs)} equal", not differs)
    awaited = sum(point["awaited_blocks"] for point in points)
    checks.expect("blocks of backward's thread are known by who waits", "> 0",
                  f"{awaited} at {len(points)} points",
                  awaited > 0 if engine_waits else None)
    for key in ("lost", "mismatches"):
        checks.expect(key, 0, hook[key], hook[key] == 0)


if __name__ == "__main__":
    children.answer({"train": train})
