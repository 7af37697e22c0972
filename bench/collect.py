# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""One collection: plain, a C callback that does nothing, cumem, torch's detector.

Live and garbage objects as in the table of what torch's method costs; garbage
without a tensor, and with one tensor among ten objects.  cumem: in a program whose
iterations end, where it rests outside gc.callbacks; heard: in one without, where gc
calls it twice, as it calls "nothing".  All processes collect by turns on one core,
since cores differ by half.  Where 100,000 objects are dead, processes differ by a
millisecond by where their memory lies, with or without cumem ("again" is plain once
more): there the budget is judged by the differences of --processes teams, each a
process of each mode, which take minutes besides --seconds; --beside of them at a
time, each on a core of its own.
"""

import gc
import operator
import os
import time
from concurrent.futures import ThreadPoolExecutor

import heaps
import loop
import measure

MODES = ("plain", "nothing", "cumem", "heard", "torch")
OURS = ("cumem", "heard")
TEAM = ("plain", "again", "nothing", *OURS)
FIXED_MS, EACH_MS = 0.002, 10e-6  # 2 us and 10 ns per garbage object
MANY = 100_000


def make(spec, counter):
    mode, device = spec["mode"], spec["device"]
    gc.disable()
    if mode in OURS:
        import cumem

        loop.start_cumem()
    import torch

    loop.share_core(spec["core"])  # not the native thread, which is under way
    torch.set_num_threads(1)
    live = [[None] for _ in range(spec["live"])]
    torch.empty(1, device=device)
    gc.collect()
    if mode == "nothing":
        gc.callbacks.append(operator.is_not)  # in C; its result is dropped
    elif mode == "torch":
        loop.start_torch_detector(torch, device)

    def handle(generation, garbage, tensors, repeat):
        torch_or_none = torch if tensors else None
        return {"live": len(live), "ms": [
            _one(generation, garbage, torch_or_none, device) for _ in range(repeat)]}

    def _one(generation, garbage, torch_or_none, device):
        if mode == "cumem":
            cumem.step()
        _collect(0)  # whatever the last turn left young
        heaps.rings(garbage, torch_or_none, device)
        start = time.perf_counter_ns()
        _collect(generation)
        spent = (time.perf_counter_ns() - start) / 1e6
        if mode in OURS and torch_or_none is not None:
            cumem.flush(60)
        return spent

    return {"tracked": len(gc.get_objects())}, handle


def _collect(generation):
    """torch's detector works when the function that collected returns."""

    def inner():
        gc.collect(generation)

    inner()


def cases(options):
    for live in [100_000, 1_000_000] + [5_000_000] * (not options.quick):
        for generation in (0, 2):
            for garbage in (0, 10, 1_000, MANY):
                for tensors in (False, True) if garbage else (False,):
                    yield live, generation, garbage, tensors


def repeats(mode, live, generation, garbage):
    """About equal time for each mode: some take a microsecond, some a second."""
    cost = 0.02 + garbage / 5e3  # ms; torch itself brings 200,000 objects
    if generation == 2 or mode == "torch":
        cost += (live + 200_000) / 1e4
    return max(1, min(20, int(60 / cost)))


def main():
    parser = measure.arguments(__doc__.splitlines()[0], 240)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--beside", type=int, default=1)
    options = parser.parse_args()
    output = measure.Output("collect", __doc__.splitlines()[0], options)
    work = list(cases(options))
    by_live = {}
    for live, *rest in work:
        by_live.setdefault(live, []).append(rest)
    clock = measure.Clock(options.seconds, len(work))
    rows, peers = [], {}
    for live, rest in by_live.items():
        with start(output, live, MODES) as team:
            for generation, garbage, tensors in rest:
                if clock.begin():
                    row, peer = run_case(output, team, clock, options.turns, live,
                                         generation, garbage, tensors)
                    rows.append(row)
                    print(*row, team.failed or "", flush=True)
                    if (generation, garbage, tensors) == (0, MANY, False):
                        peers[live] = peer
    for live, peer in peers.items():
        run_processes(output, options, live, peer)
    output.text(measure.table(
        ["live", "gen", "garbage", "tensors", "plain ms", *MODES[1:],
         "cumem - plain us", "ns/garbage", "cumem/plain", "torch/cumem"], rows))
    output.write()


def start(output, live, modes, core=None):
    return measure.Team(__file__, {
        mode: {"mode": "plain" if mode == "again" else mode, "live": live, "core": core,
               "device": output.machine["device"],
               "environment": loop.cumem_environment() if mode in OURS else {}}
        for mode in modes})


def run_case(output, team, clock, turns, live, generation, garbage, tensors):
    """Its row, and what torch's detector takes."""
    samples = {mode: [] for mode in MODES}
    for turn in range(turns):
        if turn > 1 and not clock.more():
            break
        requests = {mode: {"generation": generation, "garbage": garbage,
                           "tensors": tensors,
                           "repeat": repeats(mode, live, generation, garbage)}
                    for mode in MODES if mode != "torch" or turn < 2}
        for mode, answer in team.turn(requests).items():
            samples[mode].append(answer["ms"])
    output.case(live=live, generation=generation, garbage=garbage, tensors=tensors,
                ms=samples, failed=dict(team.failed), facts=team.facts)
    best = {mode: measure.median([value for turn in samples[mode] for value in turn])
            for mode in MODES}
    judged = generation == 0 and not tensors
    for mode in OURS if judged and garbage != MANY else ():
        judge(output, f"live {live:,}, {garbage:,} garbage: {mode}", garbage,
              differences(samples, mode), best["torch"])
    added = measure.median(differences(samples, "cumem"))
    return cells(live, generation, garbage, tensors, best, added), best["torch"]


def run_processes(output, options, live, peer):
    """MANY dead objects without a tensor, by teams on as many cores as may be."""
    cores = sorted(os.sched_getaffinity(0))[-options.beside:]
    with ThreadPoolExecutor(len(cores)) as pool:
        lanes = list(pool.map(
            lambda lane: [run_team(output, options, live, cores[lane])
                          for _ in range(lane, options.processes, len(cores))],
            range(len(cores))))
    teams = [team for lane in lanes for team in lane]
    added = {mode: [team.get(mode) for team in teams] for mode in TEAM[1:]}
    for mode in OURS:
        whole = [] if None in added[mode] else added[mode]  # one has died: not measured
        judge(output, f"live {live:,}, {MANY:,} garbage, {len(teams)} processes: {mode}",
              MANY, whole, peer)
    output.text(f"live {live:,}, {MANY:,} garbage, ms above plain of {len(teams)} teams: "
                + "; ".join(f"{mode} {', '.join(measure.number(ms, 2) for ms in each)}"
                            for mode, each in added.items()))


def run_team(output, options, live, core):
    """What each mode adds, in ms; a mode that has died is not in it."""
    request = {"generation": 0, "garbage": MANY, "tensors": False,
               "repeat": repeats("plain", live, 0, MANY)}
    samples = {mode: [] for mode in TEAM}
    with start(output, live, TEAM, core) as team:
        for _ in range(options.turns):
            for mode, answer in team.turn(dict.fromkeys(TEAM, request)).items():
                samples[mode].append(answer["ms"])
    output.case(live=live, generation=0, garbage=MANY, tensors=False, ms=samples,
                failed=dict(team.failed), facts=team.facts)
    found = {mode: measure.median(differences(samples, mode)) for mode in TEAM[1:]
             if mode not in team.failed and "plain" not in team.failed}
    print(found, flush=True)
    return found


def differences(samples, mode):
    """What this mode's median is above plain's, in ms, turn by turn."""
    return [measure.median(own) - measure.median(plain)
            for own, plain in zip(samples[mode], samples["plain"])]


def judge(output, name, garbage, added, peer):
    """In generation 0, where the collector's own work does not hide it."""
    allowed = FIXED_MS + EACH_MS * garbage
    low, high = measure.interval(added)
    known = peer is not None and low is not None
    output.budget(f"gen 0, {name}", f"+{allowed * 1e3:.1f} us",
                  f"{measure.median(added) * 1e3:+.1f} us, {low * 1e3:.1f} to {high * 1e3:.1f}"
                  if known else "-", measure.within(low, high, allowed) if known else None)


def cells(live, generation, garbage, tensors, best, added):
    def ratio(mode, base):
        if best[mode] is None or not best[base]:
            return "-"
        return f"x{best[mode] / best[base]:.2f}"

    each = added * 1e6 / garbage if added is not None and garbage else None
    return [f"{live:,}", generation, f"{garbage:,}", "1/10" if tensors else "none",
            *(measure.number(best[mode], 4) for mode in MODES),
            measure.number(added * 1e3 if added is not None else None, 1),
            measure.number(each, 1), ratio("cumem", "plain"), ratio("torch", "cumem")]


if __name__ == "__main__":
    measure.run(main, make)
