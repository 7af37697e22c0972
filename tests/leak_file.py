# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""leak.json documents for tests, their schema, and where cyclereport is."""

import functools
import json
import os
import pathlib
import subprocess

MIB = 1 << 20
GIB = 1 << 30


def program():
    """cyclereport: $CUMEM_CYCLEREPORT, else the one beside the package."""
    named = os.environ.get("CUMEM_CYCLEREPORT")
    if named:
        return named
    import cumem
    return str(pathlib.Path(cumem.__file__).parent / "bin" / "cyclereport")


def run(*args, cwd, code=0, stdin=None, **environment):
    """Runs cyclereport; its standard output, after checking the exit code."""
    keep = {name: os.environ[name] for name in ("PATH", "ASAN_OPTIONS")
            if name in os.environ}
    done = subprocess.run([program(), *map(str, args)], cwd=cwd,
                          input=stdin, capture_output=True, timeout=30,
                          env=keep | environment)
    assert done.returncode == code, done.stderr.decode(errors="replace")
    run.error = done.stderr.decode()
    return done.stdout.decode()


def error_of(*args, cwd, stdin=None):
    """The one line that a refused call says."""
    out = run(*args, cwd=cwd, code=2, stdin=stdin)
    assert out == ""
    assert run.error.count("\n") == 1, run.error
    assert run.error.startswith("cyclereport: ")
    return run.error[len("cyclereport: "):-1]


@functools.cache
def validator():
    import jsonschema
    schema = pathlib.Path(__file__).parent.parent / "reports" / "leak.schema.json"
    return jsonschema.Draft202012Validator(json.loads(schema.read_text()))


def breaches(path):
    """Where the document at `path` is not as the schema has it: one line for each."""
    return [f"{path.parent.name}: {error.json_path}: {error.message[:200]}"
            for error in validator().iter_errors(json.loads(path.read_text()))]


OUTSIDE = "outside the frameworks"  # the one category of memory that nobody tells of
MOST_UNKNOWN = 0.01


def bytes_without_a_line(report):
    """(bytes of which no line is known, all bytes) of each thing that a report names: storages,
    what C++ alone holds, what grows."""
    lines = {site["id"] for site in report["sites"] if site["frames"]}
    rows = [*report.get("storages", ()), *report.get("held", ()),
            *(row for row in report.get("growth", ()) if row.get("category") != OUTSIDE)]
    known = sum(row.get("bytes") or 0 for row in rows if row.get("site") in lines)
    every = sum(row.get("bytes") or 0 for row in rows)
    return every - known, every


def unknown_problems(report):
    """One text where more than a hundredth is without a line."""
    without, every = bytes_without_a_line(report)
    if without > MOST_UNKNOWN * every:
        yield f"{without} of {every} bytes have no line that allocated them"


def save(path, document):
    path.write_text(json.dumps(document))
    return path


# What the example reads as.
EXAMPLE = """\
cumem [rank 3]: up to 5.1 of 71.4 GiB at cuda:0's peak (iteration 412) was dead
#1 DEAD CYCLE x412, 16 MiB each, at most 5.1 GiB at once                [3f9a2c]
   cut   train.py:57  self.cb = lambda o: self.store(o)
   fix   capture weakref.ref(self) in the lambda, or set self.cb = None when
         done
   path  Trainer .cb > <lambda> > cell self ~~> Trainer .acts[0] > Tensor [64, 512] float32
   alloc model.py:112 Encoder.forward: h = self.proj(x)
hidden: 2 in libraries (tensordict), 14 under 1 MiB
cyclereport --all leak-r3-n7-4711.json
"""


def frame(filename, line, name, source, **more):
    return {"filename": filename, "line": line, "name": name,
            "source": source} | more


def vertex(number, annotation, type_, kind, size=64, **more):
    return {"id": number, "annotation": annotation, "type": type_,
            "kind": kind, "bytes": size, "site": None} | more


def edge(number, annotation, tail, head, **more):
    return {"id": number, "annotation": annotation, "tail": tail,
            "head": head, "kind": "python"} | more


def cycle(fingerprint, size, **more):
    return {"fingerprint": fingerprint, "class": "collectable",
            "vertices": [7], "payload": [], "also_held_elsewhere": [],
            "shared_with": [], "bytes_each": size, "count": 1,
            "peak_bytes": size, "total_bytes": size, "first_iteration": None,
            "last_iteration": None, "time": 1.7e9, "trigger": "gc",
            "cut": [], "rule": "unknown", "advice": "",
            "library": None} | more


def example():
    """One lambda on self, two library findings, fourteen small ones."""
    made_at = frame("/home/x/train.py", 57, "Trainer.__init__",
                    "        self.cb = lambda o: self.store(o)",
                    before="    def __init__(self):\n        self.acts = []",
                    after="\n    def store(self, o):", certain=True)
    frames = [frame("/usr/lib/torch/nn/linear.py", 116, "Linear.forward",
                    "        return F.linear(x)", library=True),
              frame("/home/x/model.py", 112, "Encoder.forward",
                    "        h = self.proj(x)"),
              frame("/home/x/train.py", 80, "main", "    model(batch)")]
    owner = cycle(
        "3f9a2c0000000001", 16 * MIB, vertices=[1, 2, 3, 4], payload=[1],
        count=412, peak_bytes=5222 * MIB, total_bytes=412 * 16 * MIB,
        first_iteration=1, last_iteration=412, cut=[4],
        rule="lambda_on_self",
        advice="capture weakref.ref(self) in the lambda, or set self.cb = "
               "None when done")
    library = {"package": "tensordict", "link":
               "https://github.com/pytorch/tensordict/issues/1187"}
    return {
        "format": "cumem-leak", "version": 1, "pid": 4711, "rank": 3,
        "world_size": 8, "host": "n7", "python": "3.12.1", "torch": "2.13.0",
        "cumem": "0.1.0", "iteration": 412, "interceptor": "sentinel",
        "allocator_hook": "", "lost": {"events": 0, "nodes": 0, "reason": ""},
        "devices": [{"name": "cuda:0", "total": 140 * GIB, "allocated": 0,
                     "reserved": 0, "peak_allocated": int(71.4 * GIB),
                     "dead_peak": 5222 * MIB, "dead_peak_iteration": 412}],
        "sites": [{"id": 1, "frames": frames, "user_frame": 1}],
        "vertices": [
            vertex(1, "__main__.Trainer", "__main__.Trainer", "object"),
            vertex(2, "function Trainer.__init__.<locals>.<lambda>",
                   "function", "function"),
            vertex(3, "tuple", "tuple", "container"),
            vertex(4, "cell", "cell", "cell"),
            vertex(5, "list", "list", "container"),
            vertex(6, "Tensor [64, 512] float32 cuda:0 128 KiB",
                   "torch.Tensor", "tensor", 16 * MIB, site=1, storage=1),
            vertex(7, "pkg.Other", "pkg.Other", "object")],
        "edges": [
            edge(1, ".cb", 1, 2), edge(2, "__closure__", 2, 3),
            edge(3, "cell self", 3, 4),
            edge(4, "cell self", 4, 1, made_at=[made_at]),
            edge(5, ".acts", 1, 5), edge(6, "[0]", 5, 6)],
        "storages": [{"id": 1, "device": "cuda:0", "address": "0x7f0012000000",
                      "bytes": 16 * MIB, "block_bytes": 16 * MIB,
                      "stream": "0x0", "site": 1, "category": "",
                      "names": [], "vertices": [6]}],
        "cycles": [owner]
        + [cycle(f"bb0000000000000{i}", 2 * MIB, library=library)
           for i in range(2)]
        + [cycle(f"aa000000000000{i:02x}", 1000) for i in range(14)],
        "growth": [],
        "collections": [{"iteration": 412, "generation": 2,
                         "duration_us": 900, "collected": 4711,
                         "device_bytes_freed": 5222 * MIB}],
    }
