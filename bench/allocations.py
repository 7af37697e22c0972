# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Device allocations: cost, completeness and attribution of the allocator's hook.

a needs no GPU; b to f do, and say so where there is none:

a  ns for a free and an allocation; events a second; bytes for a live block
b  a million allocations in 4 threads: the byte count is torch's own
c  training: each byte of memory_allocated() has a line that allocated it
d  torch.empty(256): nothing, cumem, torch's own recorder in four settings
e  torch.profiler sees the same CUDA events
f  a recorder of the user's own has the same entries

Exit status 1 when something was not as expected.
"""

import sys
import time
import traceback

import allocations_pairs
import children
import measure

CHURN = "allocations_churn.py"
GPU = "allocations_gpu.py"
TRAIN = "allocations_train.py"
# Seconds of each case, as shares of all.
SHARES = {"a": 60, "b": 90, "c": 120, "d": 45, "e": 40, "f": 20}
LONGEST = 200  # of one child


def limit(options, seconds):
    """When a child is given up: it may be late, but what was measured must be written."""
    left = max(5, options.until - time.monotonic())
    return min(LONGEST, 60 + 2 * seconds, left)


# -- b ----------------------------------------------------------------------

def case_b(options, output, checks, seconds):
    total = 100_000 if options.quick else 1_000_000
    for name, spec, environment in (
            ("", {"total": total, "seconds": seconds * 0.75}, {}),
            ("expandable segments: ",
             {"total": total // 5, "seconds": seconds * 0.25, "expandable": True},
             {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})):
        answer = children.call(CHURN, "churn", spec, limit(options, seconds),
                               **environment)
        output.case(case="b", what=name or "default", **answer)
        take(answer, f"b: {name}", output, checks)
        if "failed" in answer:
            continue
        output.text("", f"b: {name}{answer['allocations']:,} allocations in 4 threads, "
                    f"{answer['seconds']:.1f} s, {answer['checks']:,} checks, "
                    f"{answer['hook']['events']:,} events")
        rows = [[row["where"], row["blocks"], row["missing"], row["extra"],
                 row["sizes_equal"], row["streams_told"], row["streams_equal"],
                 percent(row["streams_equal"], row["blocks"])]
                for row in answer["snapshots"]]
        output.text(measure.table(
            ["against memory_snapshot()", "blocks", "missing", "extra", "size equal",
             "stream told", "stream equal", ""], rows))


# -- c ----------------------------------------------------------------------

def case_c(options, output, checks, seconds):
    models = ["transformer"] if options.quick else ["resnet50", "transformer", "compiled"]
    for model in models:
        for tool in ("cumem", "torch"):
            if model == "compiled" and tool == "torch":
                continue
            spec = {"model": model, "tool": tool,
                    "iterations": (50 if tool == "cumem" else 5)
                    if not options.quick else 5}
            answer = children.call(TRAIN, "train", spec, limit(options, seconds))
            output.case(case="c", model=model, tool=tool, **answer)
            take(answer, f"c: {model}, {tool}: ", output, checks)
            if "failed" not in answer:
                show_training(answer, model, tool, output)


def show_training(answer, model, tool, output):
    heads = ["iteration", "point", "MiB", "blocks", "user", "library", "generated",
             "torch only", "no stack", "not seen", "awaited"]
    rows = [[point["iteration"], point["point"], f"{point['bytes'] / 2**20:.1f}",
             point["blocks"],
             *(percent(point["kinds"].get(kind, 0), point["bytes"])
               for kind in ("user", "library", "generated", "torch", "none", "unseen")),
             f"{point['awaited_blocks']} = "
             + percent(point["awaited_bytes"], point["bytes"])]
            for point in answer["points"]]
    whose = "cumem" if tool == "cumem" else "peer: torch's recorder, context=all, python"
    output.text("", f"c: {model} ({whose}): whose the bytes of memory_allocated() are",
                measure.table(heads, rows))
    for site in answer["sites"]:
        output.text(f"  {site['bytes'] / 2**20:9.2f} MiB {site['count']:5} blocks  "
                    f"{'awaited ' if site['awaited'] else ''}{site['where']}")


# -- d ----------------------------------------------------------------------

def case_d(options, output, checks, seconds):
    answer = children.call(GPU, "cost", {"seconds": seconds * 0.6,
                                         "rounds": 8 if options.quick else 400},
                           limit(options, seconds))
    output.case(case="d", **answer)
    take(answer, "d: ", output, checks)
    for depth, samples in answer.get("samples", {}).items():
        base = samples.get("nothing")
        if not base or not all(samples.get(mode) for mode in ("nothing again", "cumem")):
            checks.expect(f"d: cumem adds, {depth}", "a measurement", "none", False)
            continue
        rows = []
        for mode, values in samples.items():
            added = [a - b for a, b in zip(values, base)]
            low, high = measure.interval(added)
            rows.append([mode, f"{measure.median(values):,.0f}", f"{min(values):,.0f}",
                         f"{measure.median(added):+,.0f}", f"[{low:+,.0f}, {high:+,.0f}]",
                         len(values)])
        output.text("", f"d: ns for torch.empty(256) and its free, {depth}",
                    measure.table(["", "median", "best", "added", "95 % interval",
                                   "rounds"], rows))
        judge_cost(depth, samples, checks)


def judge_cost(depth, samples, checks):
    def added(mode):
        return [a - b for a, b in zip(samples[mode], samples["nothing"])]

    found = measure.beyond_noise(added("cumem"), added("nothing again"))
    if found is None:
        checks.expect(f"d: cumem adds, {depth}", "a measurement", "one round", None)
        return
    checks.expect(f"d: cumem adds, {depth}", f"<= the run's noise, {found['noise']:.0f} ns",
                  f"{found['cost']:+.0f} ns [{found['low']:+.0f}, {found['high']:+.0f}]",
                  found["holds"])


# -- e and f ----------------------------------------------------------------

def case_e(options, output, checks, seconds):
    answers = {}
    for name, tool, environment in (("nothing", "none", {}), ("cumem", "cumem", {}),
                                    ("cumem, CUMEM_DRIVER=1", "cumem",
                                     {"CUMEM_DRIVER": "1"})):
        answer = children.call(GPU, "profile", {"tool": tool}, limit(options, seconds),
                               **environment)
        output.case(case="e", what=name, **answer)
        take(answer, f"e: {name}: ", output, checks)
        answers[name] = answer
    output.text("", "e: events that torch.profiler recorded", measure.table(
        ["", "CUDA", "memory", "all"],
        [[name, answer.get("cuda", "failed"), answer.get("memory", "-"),
          answer.get("all", "-")] for name, answer in answers.items()]))
    base, ours, driver = (answer.get("cuda") for answer in answers.values())
    if base is not None and ours is not None:
        checks.expect("e: torch.profiler's CUDA events with cumem", base, ours,
                      base == ours and base > 0)
    checks.expect("e: the same with CUMEM_DRIVER=1", f"(without: {base})", driver, None)


def case_f(options, output, checks, seconds):
    answers = {}
    for tool in ("none", "cumem"):
        answer = children.call(GPU, "recorder", {"tool": tool}, limit(options, seconds))
        output.case(case="f", what=tool, **answer)
        take(answer, f"f: {tool}: ", output, checks)
        answers[tool] = answer
    base, ours = answers["none"], answers["cumem"]
    if "failed" not in base and "failed" not in ours:
        for key in ("entries", "actions", "blocks", "with_frames", "still_on"):
            checks.expect(f"f: the user's own recorder, {key}", base[key], ours[key],
                          base[key] == ours[key])


# -- all --------------------------------------------------------------------

CASES = {"a": allocations_pairs.run, "b": case_b, "c": case_c, "d": case_d,
         "e": case_e, "f": case_f}


def percent(part, whole):
    return f"{100 * part / whole:.2f} %" if whole else "-"


def take(answer, prefix, output, checks):
    """A child's checks become ours; what a failed one said is shown."""
    if "failed" in answer:
        checks.expect(f"{prefix}answers", "an answer", answer["failed"], False)
        output.text(f"{prefix}{answer['failed']}; it said:", answer["said"])
    for row in answer.get("rows", ()):
        checks.expect(prefix + row["what"], row["expected"], row["got"], row["holds"])
        if "traceback" in row:
            output.text(f"{prefix}{row['what']}:", row["traceback"])


class Shown(children.Checks):
    """Checks that are said as they come and stand in the output."""

    _WORDS = {True: "PASS", False: "FAIL", None: "----"}

    def __init__(self, output):
        super().__init__()
        self._output = output

    def expect(self, what, expected, got, holds):
        super().expect(what, expected, got, holds)
        self._output.budget(what, str(expected), str(got), self.rows[-1]["holds"])
        self._output.text(f"{self._WORDS[self.rows[-1]['holds']]}  {what}: "
                          f"expected {expected}, got {got}")


def main():
    parser = measure.arguments(__doc__.splitlines()[0], 360)
    parser.add_argument("--case", default=",".join(CASES),
                        help="the cases, with commas (default: all)")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.case.split(",")]
    unknown = [name for name in wanted if name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    output = measure.Output("allocations", __doc__.splitlines()[0], options)
    checks = Shown(output)
    end = time.monotonic() + options.seconds
    options.until = end + options.seconds / 4
    for position, name in enumerate(wanted):
        share = SHARES[name] / sum(SHARES[other] for other in wanted[position:])
        run_case(name, options, output, checks, max(5.0, end - time.monotonic()) * share)
    output.write()
    failed = sum(row["holds"] is False for row in checks.rows)
    print(f"{len(checks.rows)} checks, {failed} FAIL")
    sys.exit(failed != 0)


def run_case(name, options, output, checks, seconds):
    begun = time.monotonic()
    if name != "a" and output.machine["device"] != "cuda":
        checks.expect(f"{name}: needs a GPU", "a GPU", "none", None)
        return
    try:
        CASES[name](options, output, checks, seconds)
    except Exception as error:
        checks.expect(f"{name}: the bench itself", "no exception",
                      f"{type(error).__name__}: {error}", False)
        output.text(traceback.format_exc())
    output.text(f"case {name}: {time.monotonic() - begun:.0f} s", "")


if __name__ == "__main__":
    main()
