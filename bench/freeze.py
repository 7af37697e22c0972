# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Freezing and analysing dead cycles that hold tensors: pause and whole time.

Wall time, and processor time of the collecting thread: on a machine that others use,
only the second is cumem's.  warn: what cumem adds to the collection itself, then how long its native thread
is busy; observe: freeze, analysis and callback, all in the collection.  All processes
collect by turns on one core, since cores differ; the native thread has its own.
"""

import gc
import itertools
import time

import heaps
import loop
import measure

MODES = ("plain", "warn", "observe", "torch")
PAUSE_MS, WHOLE_MS, WHOLE_OBJECTS = 20, 30, 10_000


def make(spec, counter):
    mode, device = spec["mode"], spec["device"]
    gc.disable()
    if mode == "warn":
        loop.start_cumem()
    import torch

    torch.set_num_threads(1)
    torch.empty(1, device=device)
    calls = itertools.count()
    if mode == "torch":
        loop.start_torch_detector(torch, device)
    elif mode == "observe":
        import cumem

        cumem.observe_tensor_cycles(lambda page: next(calls))
    heaps.tensor_cycles(3, 2, torch, device)
    gc.collect()
    loop.share_core()  # not the native thread, which has begun with this cycle

    def handle(size, objects):
        heaps.tensor_cycles(objects, size, torch, device)
        cpu, start = time.thread_time_ns(), time.perf_counter_ns()
        _collect()
        answer = {"collect_ms": (time.perf_counter_ns() - start) / 1e6,
                  "thread_ms": (time.thread_time_ns() - cpu) / 1e6}
        return {**answer, **_rest(mode, start)}

    return {}, handle


def _collect():
    """torch's detector works when the function that collected returns."""

    def inner():
        gc.collect(0)

    inner()


def _rest(mode, start):
    if mode not in ("warn", "observe"):
        return {}
    import cumem

    cumem.flush(120)
    spent = time.perf_counter_ns() - start
    status = cumem.status()
    return {"whole_ms": spent / 1e6, "longest_pause_ms":
            status["seen"].get("longest_pause_ms"), "lost": status["lost"]}


def main():
    parser = measure.arguments(__doc__.splitlines()[0], 120)
    parser.add_argument("--turns", type=int, default=9)
    options = parser.parse_args()
    output = measure.Output("freeze", __doc__.splitlines()[0], options)
    counts = [1_000, 10_000] + [100_000] * (not options.quick)
    work = [(size, count) for count in counts for size in (2, 8)]
    clock = measure.Clock(options.seconds, len(work))
    rows = []
    for size, count in work:
        name = f"{count:,} objects in cycles of {size}"
        if not clock.begin():
            output.budget(name, "", "out of time", None)
            continue
        samples, failed = run_case(output.machine["device"], size, count, options, clock)
        output.case(size=size, objects=count, samples=samples, failed=failed)
        rows.append([name, *report(output, name, count, samples, failed)])
        print(*rows[-1], failed or "", flush=True)
    output.text(measure.table(
        ["garbage", "plain ms", "warn adds ms", "longest added", "thread's, median",
         "thread's, longest", "own clock's longest", "until analysed", "observe adds",
         "torch adds", "lost"], rows))
    output.text("", "First turns (imports, layouts, the page of a new fingerprint) are "
                "in the samples, not in the medians.")
    output.write()


def run_case(device, size, count, options, clock):
    specs = {mode: {"mode": mode, "device": device, "environment":
                    loop.cumem_environment() if mode == "warn" else {}}
             for mode in MODES}
    samples = {mode: [] for mode in MODES}
    with measure.Team(__file__, specs) as team:
        for turn in range(options.turns):
            if turn > 2 and not clock.more():
                break
            requests = {mode: {"size": size, "objects": count} for mode in MODES
                        if mode != "torch" or turn < 2}
            for mode, answer in team.turn(requests).items():
                samples[mode].append(answer)
        return samples, dict(team.failed)


def added(samples, mode, key="collect_ms"):
    """Paired: what the collection took longer than the plain one of its turn."""
    return [a[key] - b[key]
            for a, b in zip(samples[mode], samples["plain"])]


def judge_longest(output, name, samples, pairs, why_not):
    """Both ways of telling the longest pause must agree, or the noise hides it.

    A pair's difference has the noise of both sides, which is 20 ms on some machines; the
    difference of the longest of each has less, but may hide one long pause behind another.
    """
    if not pairs or not samples["torch"]:
        output.budget(f"{name}: longest pause", f"<= {PAUSE_MS} ms", why_not, None)
        return
    longest = max(a["collect_ms"] for a in samples["warn"]) \
        - max(b["collect_ms"] for b in samples["plain"])
    verdicts = {value <= PAUSE_MS for value in (max(pairs), longest)}
    output.budget(f"{name}: longest pause", f"<= {PAUSE_MS} ms",
                  f"{max(pairs):.1f} ms in a pair, {longest:.1f} ms more than plain's longest",
                  verdicts.pop() if len(verdicts) == 1 else None)


def report(output, name, count, samples, failed):
    pause = added(samples, "warn")
    whole = [a["whole_ms"] - b["collect_ms"]
             for a, b in zip(samples["warn"], samples["plain"])]
    own = samples["warn"][-1]["longest_pause_ms"] if samples["warn"] else None
    torch = bool(samples["torch"])
    reason = failed.get("warn", "-")
    typical = measure.median(pause[1:])
    thread = added(samples, "warn", "thread_ms")
    judge_longest(output, name, samples, pause, reason)
    if count == WHOLE_OBJECTS:
        middle = measure.median(whole[1:])
        output.budget(f"{name}: freeze and analyse", f"<= {WHOLE_MS} ms",
                      f"{middle:.1f} ms" if whole else reason,
                      middle <= WHOLE_MS if whole and torch else None)
    lost = sum(samples["warn"][-1]["lost"].values()) if samples["warn"] else None
    values = [measure.median([s["collect_ms"] for s in samples["plain"]]), typical,
              max(pause, default=None), measure.median(thread[1:]),
              max(thread, default=None), own, measure.median(whole[1:]),
              measure.median(added(samples, "observe")[1:]),
              measure.median(added(samples, "torch"))]
    return [*(measure.number(value, 2) for value in values), lost]


if __name__ == "__main__":
    measure.run(main, make)
