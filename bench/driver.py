#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""CUMEM_DRIVER=1: what CUPTI's callbacks add to the driver's calls, and to the start.

"again" is a second process without a tool: what it adds is the noise of this machine.
"cumem" observes without CUMEM_DRIVER, "driver" with it, loaded within cuInit.
"on/off" is one process that cumem observes, subscribed and not by turns; "off" is its
turns without, beside "none": what CUPTI leaves behind.
"profiler" is torch.profiler with its CUDA activity on.
"""

import contextlib
import ctypes
import gc
import random
import statistics
import time

import loop
import measure

TOOLS = {"none": "none", "again": "none", "cumem": "cumem", "driver": "driver",
         loop.SWITCHED: "switch", "profiler": "profiler"}
PAIR, ASYNC, LAUNCH = ("cudaMalloc + cudaFree, 2 MiB",
                       "cudaMallocAsync + cudaFreeAsync, 2 MiB", "kernel launch")
CASES = {PAIR: 50, ASYNC: 200, LAUNCH: 1000}  # how many in a turn
FIRST = "first tensor"
STARTED = ("none", "again", "cumem", "driver")  # whose first tensor is measured often
DEEP = 30  # Python frames below each call, as in a job
_AT_ONCE = 100  # launches until a wait: the queue is never full


# -- the worker's side ------------------------------------------------------

def cudart():
    """libcudart, as torch has loaded it."""
    with open("/proc/self/maps") as maps:
        return ctypes.CDLL(next(line.split()[-1] for line in maps if "libcudart" in line))


def pairs(allocate, free, *stream):
    """A function that allocates and frees by libcudart so many times."""
    pointer, size = ctypes.c_void_p(), ctypes.c_size_t(2 << 20)
    reference = ctypes.byref(pointer)

    def run(count):
        for _ in range(count):
            if allocate(reference, size, *stream) or free(pointer, *stream):
                raise RuntimeError("libcudart refused an allocation")

    return run


def launches(torch, x):
    def run(count):
        for _ in range(count // _AT_ONCE):
            for _ in range(_AT_ONCE):
                x.add_(1)
            torch.cuda.synchronize()

    return run


def work(torch, x):
    """{case: function of a count}"""
    runtime = cudart()
    return {PAIR: pairs(runtime.cudaMalloc, runtime.cudaFree),
            ASYNC: pairs(runtime.cudaMallocAsync, runtime.cudaFreeAsync, None),
            LAUNCH: launches(torch, x)}


def deep(frames, function, *arguments):
    return function(*arguments) if frames <= 0 else deep(frames - 1, function, *arguments)


def seconds(function, *arguments):
    begun = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begun


def driver():
    """What cumem says of its subscription."""
    import cumem

    return cumem.status()["driver"]


class Switch:
    """cumem observes all the time, with and without the driver's events by turns."""

    def __init__(self):
        self._handle = None

    def set(self, on):
        """Seconds until cumem observes again."""
        import cumem
        from cumem import _core, _driver

        if self._handle is not None:
            self._handle.remove()
        _core.driver(on, _driver._find_cupti(), "the bench subscribes at run time")
        begun = time.perf_counter()
        self._handle = cumem.observe_tensor_cycles(lambda page: None)
        return time.perf_counter() - begun


def require_events(wanted):
    """A tool that looks away proves nothing."""
    found = driver()
    if (found["hook"] == "driver") != wanted or found["trouble"]:
        raise RuntimeError(f"driver: {found['hook']}: {found['trouble'] or found['why']}")


class Bench:
    """One process: start() once, then turns, then facts()."""

    def __init__(self, tool):
        self._tool, self._switch = tool, Switch()
        if tool in ("cumem", "driver"):
            loop.start_cumem()
        import torch

        self._torch = torch
        gc.disable()

    def start(self):
        """Seconds until a tensor is there, and what comes on top of that."""
        found = {FIRST: seconds(self._first_tensor)}
        if self._tool == "switch":
            self._switch.set(False)  # what cumem learns once of torch is not CUPTI's
            found["observe"] = self._switch.set(False)
            found["subscribed"] = self._switch.set(True)
        elif self._tool == "profiler":
            found["profiler"] = seconds(self._profile, int)
        if self._tool in ("switch", "driver"):
            require_events(True)
        self._work = work(self._torch, self._x)
        self.turn()
        return found

    def _first_tensor(self):
        self._x = self._torch.zeros(16, device="cuda")
        self._torch.cuda.synchronize()
        gc.collect()  # where cumem sees that CUDA is there

    def turn(self, on=None):
        """us for each call of each case; `told`: events that came meanwhile."""
        found = {}
        if on is not None:
            found["observe"] = self._switch.set(on)
            require_events(on)
        listens = on or self._tool == "driver"
        before = driver()["events"] if listens else 0
        with self._recording():
            found |= {case: deep(DEEP, self._one, case) for case in CASES}
        if listens:
            found["told"] = driver()["events"] - before
        return found

    def _one(self, case):
        self._work[case](CASES[case] // 10)  # the caches are as the other modes left them
        return seconds(self._work[case], CASES[case]) / CASES[case] * 1e6

    def _recording(self):
        from torch.profiler import ProfilerActivity, profile

        return profile(activities=[ProfilerActivity.CUDA]) if self._tool == "profiler" \
            else contextlib.nullcontext()

    def _profile(self, function, *arguments):
        with self._recording() as profile:
            function(*arguments)
        return profile

    def facts(self):
        if self._tool == "profiler":
            events = self._profile(self._work[LAUNCH], _AT_ONCE).events()
            return {"GPU events of 100 launches":
                    sum(str(event.device_type).endswith("CUDA") for event in events)}
        if self._tool != "driver":
            return {}
        kept = ctypes.c_void_p()
        cudart().cudaMalloc(ctypes.byref(kept), ctypes.c_size_t(32 << 20))
        return {"driver": driver(), "held by library": held()}


def held():
    """{library: bytes} of what the driver gave out; "?" is none that cumem could name."""
    import cumem

    found = {}
    for row in cumem.find_cycles().report.get("held", []):
        if row["framework"] == "driver":
            name = row["library"] or "?"
            found[name] = found.get(name, 0) + row["bytes"]
    return found


def make(spec, counter):
    bench = Bench(spec["tool"])
    return {}, lambda what, **more: getattr(bench, what)(**more)


# -- the parent's side ------------------------------------------------------

def specs():
    switches = {"cumem": loop.cumem_environment(),
                "driver": {**loop.cumem_environment(), "CUMEM_DRIVER": "1"}}
    return {mode: {"tool": tool, "environment": switches.get(tool, {})}
            for mode, tool in TOOLS.items()}


def start_round(dice):
    """The first tensors of fresh processes, by mode, one after another."""
    wanted = {mode: spec for mode, spec in specs().items() if mode in STARTED}
    with measure.Team(__file__, wanted) as team:
        return {mode: team.ask(mode, what="start") for mode in dice.sample(STARTED, len(STARTED))}


def start_rounds(count, seconds, dice):
    """As many as there is time for; two at least.

    One more process starts first, and stays: a GPU that nobody uses takes longer.
    """
    end, found = time.monotonic() + seconds, []
    with measure.Team(__file__, {"first of all": specs()["none"]}) as first:
        first.ask("first of all", what="start")
        while len(found) < count and (time.monotonic() < end or len(found) < 2):
            found.append(start_round(dice))
    return found


def one_round(clock, dice):
    """{"start", "turns", "facts", "failed"} of fresh processes, each by mode."""
    order = dice.sample(list(TOOLS), len(TOOLS))  # who starts CUDA first may wait longer
    with measure.Team(__file__, specs()) as team:
        found = {"start": {mode: team.ask(mode, what="start") for mode in order},
                 "turns": turns(team, clock.part(1)),
                 "facts": {mode: team.ask(mode, what="facts") for mode in TOOLS}}
        return {**found, "failed": dict(team.failed)}


def turns(team, until):
    samples = {mode: [] for mode in (*TOOLS, loop.OFF)}
    others = {mode: {"what": "turn"} for mode in TOOLS if mode != loop.SWITCHED}
    loop.take_turns(team, samples, others, {"what": "turn"}, until)
    return samples


def added(rounds, mode, case):
    """ns by which `mode` takes longer than its base, in each pair of turns."""
    base = loop.OFF if mode == loop.SWITCHED else "none"
    return [(one[case] - other[case]) * 1e3 for each in rounds
            for one, other in zip(each["turns"][mode], each["turns"][base])]


def quartiles(values, digits=0):
    if len(values) < 2:
        return "-"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:+,.{digits}f} [{low:+,.{digits}f}, {high:+,.{digits}f}]"


def tell_calls(output, rounds):
    rows, modes = [], {mode: mode for mode in TOOLS if mode != "none"}
    modes |= {loop.SWITCHED: "on/off", loop.OFF: loop.OFF}
    for case in CASES:
        base = [turn[case] for each in rounds for turn in each["turns"]["none"]]
        rows.append([case, measure.number(measure.median(base)),
                     *(quartiles(added(rounds, mode, case)) for mode in modes)])
    output.text("ns that are added to one, median [quartiles] of the pairs of turns;"
                f" {DEEP} Python frames deep",
                measure.table(["", "none, us", *modes.values()], rows))


def starts(rounds, mode, what):
    """Seconds, by round; None where the process failed."""
    return [(each[mode] or {}).get(what) for each in rounds]


def row_of_start(name, values, base):
    differences = [(one - other) * 1e3 for one, other in zip(values, base)
                   if one is not None and other is not None]
    return [name, quartiles(differences, 1), len(differences)]


def tell_start(output, started, rounds):
    """`started`: of start_rounds()."""
    def cuda(mode):
        return starts(started, mode, FIRST)

    def own(mode, what):
        return starts([each["start"] for each in rounds], mode, what)

    def observed(mode):
        return [turn["observe"] for each in rounds for turn in each["turns"][mode]]

    rows = [("nothing, again", cuda("again"), cuda("none")),
            ("cumem without CUMEM_DRIVER", cuda("cumem"), cuda("none")),
            ("CUMEM_DRIVER=1 more than that, loaded within cuInit", cuda("driver"), cuda("cumem")),
            ("subscribing at run time, first", own(loop.SWITCHED, "subscribed"),
             own(loop.SWITCHED, "observe")),
            ("subscribing again", observed(loop.SWITCHED), observed(loop.OFF)),
            ("torch.profiler, first start and stop", own("profiler", "profiler"),
             [0] * len(rounds))]
    whole = measure.median([value for value in cuda("none") if value is not None])
    output.text("", "ms that are added to the start, median [quartiles]; without a tool a"
                f" process has its first tensor after {measure.number(whole)} s",
                measure.table(["", "ms", "times"], [row_of_start(*row) for row in rows]))


def judge_launches(output, rounds):
    found = measure.beyond_noise(added(rounds, loop.SWITCHED, LAUNCH),
                                 added(rounds, "again", LAUNCH))
    if found is None:
        output.budget("kernel launch, on/off", "the run's noise", "-", None)
        return
    output.budget("kernel launch, on/off", f"the run's noise, {found['noise']:,.0f} ns",
                  f"{found['cost']:+,.0f} ns [{found['low']:+,.0f}, {found['high']:+,.0f}]",
                  found["holds"])


def judge_told(output, rounds):
    """Each allocation and each free is one event; the warm-up's come too."""
    each = sum(2 * (CASES[case] + CASES[case] // 10) for case in (PAIR, ASYNC))
    for mode in ("driver", loop.SWITCHED):
        told = [turn["told"] for one in rounds for turn in one["turns"][mode]]
        output.budget(f"{mode}: allocations and frees told in a turn", str(each),
                      f"{min(told)} to {max(told)}" if told else "-",
                      set(told) == {each} if told else None)


def tell_facts(output, rounds):
    last = rounds[-1]
    output.text("", *(f"{mode}: {facts}" for mode, facts in last["facts"].items() if facts))
    failed = {mode: why for each in rounds for mode, why in each["failed"].items()}
    output.text(*(f"{mode} failed: {why}" for mode, why in failed.items()))


def main():
    parser = measure.arguments(__doc__.splitlines()[0], 180)
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes, for turns")
    parser.add_argument("--starts", type=int, default=7,
                        help="fresh processes, for the start (half of the time at most)")
    options = parser.parse_args()
    output = measure.Output("driver", __doc__.splitlines()[0], options)
    if output.machine["device"] != "cuda":
        raise SystemExit("bench/driver.py: not run: torch finds no GPU here, so no CUDA driver")
    count = min(options.rounds, 2) if options.quick else options.rounds
    dice, rounds, begun = random.Random(1), [], time.monotonic()
    started = start_rounds(options.starts, options.seconds / 2, dice)
    output.case(started=started)
    clock = measure.Clock(options.seconds - (time.monotonic() - begun), count)
    while len(rounds) < count and (clock.begin() or len(rounds) < 2):
        rounds.append(one_round(clock, dice))
        output.case(**rounds[-1])
    tell_calls(output, rounds)
    tell_start(output, started, rounds)
    for tell in (tell_facts, judge_launches, judge_told):
        tell(output, rounds)
    output.write()


if __name__ == "__main__":
    measure.run(main, make)
