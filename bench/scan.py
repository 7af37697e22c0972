# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem.find_cycles() against gc.collect(), objgraph and refcycle, on live heaps."""

import gc
import time

import heaps
import measure

ALLOWED = {"random graph": 1.1, "instances": 1.1, "closures": 1.1, "empty lists": 2.0}


def _collect():
    gc.collect()


def _find_cycles():
    import cumem

    cumem.find_cycles()


def _scan():
    """The core's part of find_cycles(), without page and settings."""
    from cumem import _core, _runtime

    _core.scan(_runtime.MANUAL, False)


def _objgraph():
    import objgraph

    objgraph.typestats()


def _refcycle():
    import refcycle

    refcycle.snapshot()


MODES = {"gc.collect()": _collect, "find_cycles()": _find_cycles, "core scan": _scan,
         "objgraph.typestats()": _objgraph, "refcycle.snapshot()": _refcycle}


def make(spec, counter):
    gc.disable()
    heap = heaps.SHAPES[spec["shape"]](spec["count"])
    gc.collect()

    def handle(mode):
        function = MODES[mode]
        start = time.perf_counter_ns()
        function()
        return {"ms": (time.perf_counter_ns() - start) / 1e6, "kept": len(heap)}

    return {"tracked": len(gc.get_objects())}, handle


def take_turns(script, spec, options, clock):
    """One process does both by turns: the same heap at the same addresses."""
    samples, failed, facts = {mode: [] for mode in MODES}, {}, {}
    peers = list(MODES)[3:] if spec["count"] <= options.peers_up_to else []
    if spec["shape"] != "random graph":
        peers = peers[:1]  # refcycle takes ten seconds and more
    for mode in ("find_cycles()", *peers):  # first calls: imports, page tables
        with measure.Team(script, {"one": spec}) as team:
            facts = team.facts.get("one", facts)
            for turn in range(options.turns if mode == "find_cycles()" else 1):
                if turn > 2 and not clock.more():
                    break
                for each in (["gc.collect()", mode, "core scan"] if mode
                             == "find_cycles()" else [mode]):
                    answer = team.ask("one", mode=each)
                    samples[each] += [answer["ms"]] if answer else []
            if team.failed:
                failed[mode] = team.failed["one"]
    return {"samples_ms": samples, "failed": failed, "facts": facts}


def main():
    parser = measure.arguments(__doc__, 180)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--peers-up-to", type=int, default=1_000_000,
                        help="objects (refcycle takes seconds per million)")
    options = parser.parse_args()
    output = measure.Output("scan", __doc__, options)
    counts = [1_000_000] if options.quick else [1_000_000, 5_000_000]
    work = [(count, shape) for count in counts for shape in heaps.SHAPES]
    clock = measure.Clock(options.seconds, len(work))
    rows = []
    for count, shape in work:
        name = f"{shape} {count:,}"
        if not clock.begin():
            output.budget(name, f"<= {ALLOWED[shape]}x", "out of time", None)
            continue
        spec = {"shape": shape, "count": count}
        result = take_turns(__file__, spec, options, clock)
        output.case(**spec, **result)
        rows.append([name, *report(output, name, ALLOWED[shape], result)])
        print(*rows[-1], result["failed"] or "", flush=True)
    output.text(measure.table(
        ["heap", "tracked", *(f"{mode} ms" for mode in MODES), "find/collect"], rows))
    output.write()


def report(output, name, allowed, result):
    samples = result["samples_ms"]
    pairs = [a / b for a, b in zip(samples["find_cycles()"], samples["gc.collect()"])]
    found = measure.median(pairs[1:])  # the first makes the page tables
    peers = any(samples[mode] for mode in list(MODES)[3:])
    output.budget(name, f"<= {allowed}x of gc.collect()",
                  f"{found:.2f}x" if found else "failed: "
                  + result["failed"].get("find_cycles()", "?"),
                  found <= allowed if found else None)
    if not peers:
        output.budgets[-1]["measured"] += " (peers: see 1,000,000)"
    medians = [measure.number(measure.median(samples[mode]), 1) for mode in MODES]
    return [f"{result['facts'].get('tracked', 0):,}", *medians, measure.number(found, 2)]


if __name__ == "__main__":
    measure.run(main, make)
