# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""leak.json with 10, 1,000 and 10,000 cycles to a page; peers on the same graph.

equal: cycles of one kind as cumem itself writes them, folded; kinds: one entry for
each cycle, 40 fingerprints among them; different: a fingerprint for each.
Peers draw the equal cycles: torch's to_html (its page draws in the browser),
refcycle's and objgraph's DOT and Graphviz's dot on them.
"""

import gc
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import heaps
import measure

ALLOWED_SECONDS, ALLOWED_BYTES = 1.0, 300 * 1024
PEERS = ("torch", "refcycle", "objgraph")


# -- inputs -----------------------------------------------------------------

def synthetic(count, kinds):
    """A leak.json with `count` cycles of two nodes and a tensor each."""
    document = {"format": "cumem-leak", "version": 1, "pid": 4711, "rank": None,
                "world_size": None, "host": "bench", "python": "3.12.3",
                "torch": "2.11.0", "cumem": "0.1.0", "iteration": count,
                "interceptor": "sentinel", "allocator_hook": "",
                "lost": {"events": 0, "nodes": 0, "reason": ""},
                "devices": [{"name": "cuda:0", "total": 150 << 30,
                             "allocated": 60 << 30, "reserved": 64 << 30,
                             "peak_allocated": 72 << 30, "dead_peak": 5 << 30,
                             "dead_peak_iteration": count // 2}],
                "sites": [], "vertices": [], "edges": [], "storages": [],
                "cycles": [], "growth": [], "collections": []}
    for index in range(count):
        _add_cycle(document, index, index % kinds)
    return document


def _add_cycle(document, index, kind):
    base, size = 3 * index, (1 + kind % 64) << 20
    edge = 3 * index
    name = f"Node{kind}"
    source = f"first.link{kind}, second.link{kind} = second, first"
    if index == kind:
        document["sites"].append({"id": kind + 1, "user_frame": 0, "frames": [
            {"filename": "/home/user/train.py", "line": 100 + kind, "name": "step",
             "source": "tensor = torch.zeros(size, device=device)"},
            {"filename": "/home/user/train.py", "line": 12, "name": "main",
             "source": "step()"}]})
    document["vertices"] += [
        {"id": base + 1, "annotation": name, "type": f"train.{name}",
         "kind": "object", "bytes": 0, "site": None},
        {"id": base + 2, "annotation": name, "type": f"train.{name}",
         "kind": "object", "bytes": 0, "site": None},
        {"id": base + 3, "annotation": f"Tensor [{size // 4}] float32 cuda:0",
         "type": "torch.Tensor", "kind": "tensor", "bytes": size, "site": kind + 1,
         "storage": index + 1}]
    made_at = [{"filename": "/home/user/train.py", "line": 200 + kind, "name": "step",
                "source": source, "certain": True}]
    document["edges"] += [
        {"id": edge + 1, "annotation": f".link{kind}", "tail": base + 1,
         "head": base + 2, "kind": "python", "made_at": made_at},
        {"id": edge + 2, "annotation": f".link{kind}", "tail": base + 2,
         "head": base + 1, "kind": "python", "made_at": made_at},
        {"id": edge + 3, "annotation": ".tensor", "tail": base + 1,
         "head": base + 3, "kind": "python"}]
    document["storages"].append(
        {"id": index + 1, "device": "cuda:0", "address": hex(0x7F0000000000 + index),
         "bytes": size, "block_bytes": size, "stream": None, "site": kind + 1,
         "category": "other", "names": [], "vertices": [base + 3]})
    document["cycles"].append(
        {"fingerprint": f"{(kind + 1) * 0x9E3779B97F4A7C15 % 2**64:016x}",
         "class": "collectable", "vertices": [base + 1, base + 2],
         "payload": [index + 1], "also_held_elsewhere": [], "shared_with": [],
         "bytes_each": size, "count": 1, "peak_bytes": size, "total_bytes": size,
         "first_iteration": index, "last_iteration": index, "time": 1.7e9,
         "trigger": "gc", "cut": [edge + 2], "rule": "back_link",
         "advice": f"make {name}.link{kind} a weakref.ref, or set it to None when done",
         "library": None})


def _leak(count):
    import torch

    for _ in range(count):
        first, second = heaps.Node(torch.empty(64)), heaps.Node(None)
        first.link, second.link = second, first


def make(spec, counter):
    """A worker that leaks `count` equal cycles and hands them to one of the tools."""
    import torch

    torch.empty(1)
    gc.collect()
    gc.disable()
    if spec["tool"] == "cumem":
        return {}, lambda path: _write_report(spec["count"], path)
    return {}, lambda seconds: _draw(spec["tool"], spec["count"], seconds)


def _write_report(count, path):
    import cumem

    _leak(count)
    cumem.find_cycles(devices="cpu").save(path)
    return {}


# -- peers ------------------------------------------------------------------

def _dead(count):
    gc.set_debug(gc.DEBUG_SAVEALL)
    _leak(count)
    gc.collect()
    gc.set_debug(0)
    return list(gc.garbage)


def _draw(tool, count, seconds):
    dead = _dead(count)
    start = time.perf_counter()
    text = {"torch": _torch_page, "refcycle": _refcycle_dot,
            "objgraph": _objgraph_dot}[tool](dead)
    answer = {"export_seconds": time.perf_counter() - start, "bytes": len(text)}
    if tool != "torch":
        answer.update(_dot(text, seconds))
    return answer


def _torch_page(dead):
    import torch
    from torch.utils.viz import _cycles

    _cycles.is_cuda_tensor = lambda thing: isinstance(thing, torch.Tensor)
    return _cycles.to_html(_cycles.create_graph(dead, context=lambda _: None))


def _refcycle_dot(dead):
    import refcycle

    return refcycle.ObjectGraph(dead).annotated().to_dot()


def _objgraph_dot(dead):
    import io

    import objgraph

    out = io.StringIO()
    nodes = [thing for thing in dead if isinstance(thing, heaps.Node)]
    objgraph.show_refs(nodes, max_depth=2, output=out)
    return out.getvalue()


def _bounded():
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def _dot(text, seconds):
    """Graphviz's own program; without limits it takes hours and the memory."""
    if shutil.which("dot") is None:
        return {"dot": "not installed"}
    start = time.perf_counter()
    try:
        done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), timeout=seconds,
                              capture_output=True, preexec_fn=_bounded)
    except subprocess.TimeoutExpired:
        return {"dot": f"> {seconds:.0f} s"}
    if done.returncode != 0:
        return {"dot": f"failed: {done.returncode}"}
    return {"dot_seconds": time.perf_counter() - start, "svg_bytes": len(done.stdout)}


# -- cyclereport ------------------------------------------------------------

def program():
    code = "import cumem, pathlib; print(pathlib.Path(cumem.__file__).with_name('bin'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=measure.environment())
    found = pathlib.Path(done.stdout.strip() or "/nonexistent") / "cyclereport"
    return str(found) if found.exists() else shutil.which("cyclereport")


def report_once(cyclereport, path, page):
    start = time.perf_counter()
    done = subprocess.run([cyclereport, str(path), "-o", str(page), "-f"],
                          capture_output=True, text=True, timeout=120)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise measure.Failed(f"exit {done.returncode}: {done.stderr.strip()[:200]}")
    return seconds


def run_input(output, cyclereport, path, name, turns):
    """One row: the page of one leak.json."""
    page = path.with_suffix(".html")
    try:
        seconds = [report_once(cyclereport, path, page) for _ in range(turns)]
    except (measure.Failed, subprocess.SubprocessError) as failure:
        output.case(name=name, failed=str(failure))
        output.budget(name, "<= 1 s, <= 300 KiB", str(failure)[:60], None)
        return [name, "failed", "-", "-", "-"]
    text = page.read_text()
    bytes_ = page.stat().st_size
    output.case(name=name, seconds=seconds, page_bytes=bytes_, svgs=text.count("<svg"),
                input_bytes=path.stat().st_size)
    middle = measure.median(seconds)
    if name.startswith("10,000"):
        output.budget(name, "<= 1 s, <= 300 KiB",
                      f"{middle:.2f} s, {bytes_ / 1024:.0f} KiB",
                      middle <= ALLOWED_SECONDS and bytes_ <= ALLOWED_BYTES
                      and "<svg" in text)
    return [name, f"{path.stat().st_size / 1e6:.2f}", measure.number(middle),
            f"{bytes_ / 1024:.0f}", text.count("<svg")]


def inputs(folder, counts, failures):
    for count in counts:
        path = folder / f"equal-{count}.json"
        try:
            with measure.Team(__file__, {"cumem": {"tool": "cumem", "count": count}}) \
                    as team:
                team.ask("cumem", path=str(path))
                failures.update(team.failed)
        except OSError as error:
            failures["cumem"] = str(error)
        if path.exists():
            yield f"{count:,} equal", path
        for kind, number in (("of 40 kinds", 40), ("all different", count)):
            path = folder / f"{kind.replace(' ', '-')}-{count}.json"
            path.write_text(json.dumps(synthetic(count, number)))
            yield f"{count:,} {kind}", path


def run_peers(output, counts, seconds):
    rows = []
    for count in counts:
        for tool in PEERS:
            with measure.Team(__file__, {tool: {"tool": tool, "count": count}}) as team:
                answer = team.ask(tool, seconds=seconds)
                failed = team.failed.get(tool)
            output.case(peer=tool, count=count, answer=answer, failed=failed)
            answer = answer or {"dot": f"failed: {failed}"}
            rows.append([f"{tool}, {count:,} equal", measure.number(
                answer.get("export_seconds")), f"{answer.get('bytes', 0) / 1024:.0f}",
                measure.number(answer.get("dot_seconds", answer.get("dot"))),
                f"{answer.get('svg_bytes', 0) / 1024:.0f}"])
            print(*rows[-1], flush=True)
    return rows


def main():
    parser = measure.arguments(__doc__.splitlines()[0], 120)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--peer-seconds", type=float, default=20,
                        help="limit for each run of dot")
    parser.add_argument("--cyclereport", help="the program (default: the package's)")
    options = parser.parse_args()
    output = measure.Output("page", __doc__.splitlines()[0], options)
    counts = [10, 1_000] + [10_000] * (not options.quick)
    cyclereport = options.cyclereport or program()
    rows, failures = [], {}
    with tempfile.TemporaryDirectory(prefix="cumem-bench-") as folder:
        for name, path in inputs(pathlib.Path(folder), counts, failures):
            if cyclereport:
                rows.append(run_input(output, cyclereport, path, name, options.turns))
                print(*rows[-1], flush=True)
    if not cyclereport:
        output.budget("cyclereport", "", "not found", None)
    for reason in failures.values():
        output.text(f"equal cycles from cumem itself: failed: {reason}")
    output.text(measure.table(["leak.json", "MB", "seconds", "page KiB", "svg"], rows))
    peers = run_peers(output, counts, options.peer_seconds)
    output.text("", measure.table(["peer", "export s", "KiB", "dot s", "svg KiB"], peers))
    output.write()


if __name__ == "__main__":
    measure.run(main, make)
