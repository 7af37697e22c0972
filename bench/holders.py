# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The walk for holders, and cumem.why_alive(), against gc.collect(), on live heaps."""

import gc
import time

import heaps
import measure

ALLOWED = 1.5


def _collect(target):
    gc.collect()


def _holders(target):
    from cumem import _core

    _core.holders([[target]], [None], [0], False, 1 << 28)


def _retained(target):
    """With what goes with the holder: all references are kept."""
    from cumem import _core

    _core.holders([[target]], [None], [0], True, 1 << 28)


def _why_alive(target):
    import cumem

    cumem.why_alive(target)


MODES = {"gc.collect()": _collect, "holders": _holders, "holders, retained": _retained,
         "why_alive()": _why_alive}


class Target:
    pass


def make(spec, counter):
    import cumem

    cumem.why_alive(None)  # the first call prepares
    gc.disable()
    heap = heaps.SHAPES[spec["shape"]](spec["count"])
    # Nothing in Python refers to it: the walk has to look everywhere.
    target = Target()
    gc.collect()

    def handle(mode):
        function = MODES[mode]
        start = time.perf_counter_ns()
        function(target)
        return {"ms": (time.perf_counter_ns() - start) / 1e6, "kept": len(heap)}

    return {"tracked": len(gc.get_objects())}, handle


def take_turns(script, spec, options, clock):
    samples, failed, facts = {mode: [] for mode in MODES}, {}, {}
    with measure.Team(script, {"one": spec}) as team:
        facts = team.facts.get("one", facts)
        for turn in range(options.turns):
            if turn > 2 and not clock.more():
                break
            for mode in MODES:
                answer = team.ask("one", mode=mode)
                samples[mode] += [answer["ms"]] if answer else []
        if team.failed:
            failed = {"one": team.failed["one"]}
    return {"samples_ms": samples, "failed": failed, "facts": facts}


def main():
    parser = measure.arguments(__doc__, 120)
    parser.add_argument("--turns", type=int, default=9)
    options = parser.parse_args()
    output = measure.Output("holders", __doc__, options)
    counts = [1_000_000] if options.quick else [1_000_000, 5_000_000]
    work = [(count, shape) for count in counts for shape in heaps.SHAPES]
    clock = measure.Clock(options.seconds, len(work))
    rows = []
    for count, shape in work:
        name = f"{shape} {count:,}"
        if not clock.begin():
            output.budget(name, f"<= {ALLOWED}x", "out of time", None)
            continue
        spec = {"shape": shape, "count": count}
        result = take_turns(__file__, spec, options, clock)
        output.case(**spec, **result)
        rows.append([name, *report(output, name, result)])
        print(*rows[-1], result["failed"] or "", flush=True)
    output.text(measure.table(
        ["heap", "tracked", *(f"{mode} ms" for mode in MODES),
         "holders/collect", "retained/collect"], rows))
    output.write()


def report(output, name, result):
    """The look that growth takes is the one with retained bytes."""
    samples = result["samples_ms"]
    found = {}
    for mode in ("holders", "holders, retained"):
        pairs = [a / b for a, b in zip(samples[mode], samples["gc.collect()"])]
        found[mode] = measure.median(pairs[1:])  # the first makes the page tables
        output.budget(f"{name}: {mode}", f"<= {ALLOWED}x of gc.collect()",
                      f"{found[mode]:.2f}x" if found[mode] else f"failed: {result['failed']}",
                      found[mode] <= ALLOWED if found[mode] else None)
    medians = [measure.number(measure.median(samples[mode]), 1) for mode in MODES]
    return [f"{result['facts'].get('tracked', 0):,}", *medians,
            *(measure.number(value, 2) for value in found.values())]


if __name__ == "__main__":
    measure.run(main, make)
