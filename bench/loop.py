# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A training loop under one of the tools, as a worker of measure.py.

The loop is that of torch's own report on reference cycles made small: a
model, AdamW, 3,000 short-lived Python lists per iteration, so that Python's
collector runs by itself, `live` objects that stay, and `cycles` dead cycles of
two nodes that hold one tensor.
"""

import gc
import itertools
import logging
import os
import tempfile
import time

import measure

_SHORT_LIVED = 3000
_FEWEST_TURNS, _FEWEST_ROUNDS = 8, 2  # with one round, other addresses go unseen
_WARM_UP = 60  # what happens once is not what an iteration costs
# Not timed, by whether the tool was switched: for 64 iterations it looks more closely.
_AWAY = {True: 80, False: 40, None: 3}
_LONGER = 3  # a turn of what was switched, for all that goes before it


# Where the loop's threads run: as the system puts them, which is how a job runs, or
# all on one core, where the same hooks are a larger share of a shorter iteration.
CORES = ("own", "one")


def arguments(description, seconds):
    parser = measure.arguments(description, seconds)
    parser.add_argument("--cores", choices=CORES, default=CORES[0], help="for the "
                        "loop's threads: where the system puts them, or one for all")
    return parser


def share_core(core=None):
    """This thread and those that it starts from now on run on one core, the last or this.

    Else autograd's thread is woken on another one, and what that takes moves by more
    than all of cumem's hooks together.
    """
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0)) if core is None else core})


class Node:
    def __init__(self, tensor):
        self.tensor = tensor
        self.link = None


def start_cumem():
    """What CUMEM_WARN_CYCLES=1 does, also where cumem.pth is not installed."""
    import cumem

    if cumem.status()["interceptor"] == "none":
        from cumem import _start

        _start.main()
    _require_sentinel()


def _require_sentinel():
    import cumem

    status = cumem.status()
    if status["interceptor"] != "sentinel":
        raise RuntimeError(f"cumem: {status['interceptor']}: {status['why']}")


def cumem_environment():
    folder = tempfile.mkdtemp(prefix="cumem-bench-")
    return {"CUMEM_WARN_CYCLES": "1",
            "CUMEM_OUTPUT": os.path.join(folder, "leak-%p.json")}


class Switch:
    """One tool on and off within a process: same addresses, same core."""

    def __init__(self, tool, callback):
        self._tool, self._callback = tool, callback
        self._folder = tempfile.mkdtemp(prefix="cumem-bench-")
        self._handle = None

    def set(self, on):
        import cumem

        if not on and self._handle is not None:
            cumem.flush(30)
            self._handle.remove()
            self._handle = None
        elif on and self._handle is None:
            self._handle = cumem.observe_tensor_cycles(self._callback) \
                if self._tool == "switch observe" \
                else cumem.warn_tensor_cycles(directory=self._folder)
            _require_sentinel()


def start_torch_detector(torch, device):
    """torch's observe_tensor_cycles; without CUDA the same code on CPU tensors.

    Its own entry point asks for the CUDA allocator's history, and its test for a
    tensor for device "cuda": only these two are other here.
    """
    from torch.utils.viz import _cycles

    logging.disable(logging.WARNING)
    if device == "cuda":
        return _cycles.observe_tensor_cycles(lambda page: None)
    _cycles.is_cuda_tensor = lambda thing: isinstance(thing, torch.Tensor)

    def observer(garbage):
        if any(_cycles.is_cuda_tensor(thing) for thing in garbage):
            _cycles.to_html(_cycles.create_graph(garbage, context=lambda _: None))

    return _cycles.observe_garbage(observer)


def _mlp(torch, device):
    width, batch = (512, 64) if device == "cuda" else (192, 64)
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(8)])
    return model, torch.randn(batch, width)


def _transformer(torch, device):
    width, batch = (256, 16) if device == "cuda" else (48, 4)
    layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return model, torch.randn(batch, 16, width)


_MODELS = {"mlp": _mlp, "transformer": _transformer}


def _step_of(torch, spec, device):
    torch.manual_seed(0)
    model, batch = _MODELS[spec["model"]](torch, device)
    model, batch = model.to(device), batch.to(device)
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        for _ in range(spec["cycles"]):
            first, second = Node(torch.zeros(1024, device=device)), Node(None)
            first.link, second.link = second, first
        return len([[i] for i in range(_SHORT_LIVED)])

    return step


def _collections():
    return sum(generation["collections"] for generation in gc.get_stats())


def begin(spec):
    """torch, the objects that stay, and the step, warm, under "warn" with cumem."""
    if spec["tool"] == "warn":
        start_cumem()  # its own thread is free, as in a job
    if spec["cores"] == "one":
        share_core()
    import torch

    if spec["device"] == "cpu":
        torch.set_num_threads(1)
    live = [[i] for i in range(spec["live"])]
    step = _step_of(torch, spec, spec["device"])
    for _ in range(_WARM_UP):
        step()
    gc.collect()
    return torch, live, step


def make(spec, counter):
    """A worker: `spec` has tool, model, live, cycles, cores, device."""
    tool, device = spec["tool"], spec["device"]
    torch, live, step = begin(spec)
    calls = itertools.count()
    if tool == "torch":
        start_torch_detector(torch, device)
    elif tool == "observe":
        import cumem

        cumem.observe_tensor_cycles(lambda page: next(calls))
        _require_sentinel()
    switch = Switch(tool, lambda page: next(calls))
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None

    def handle(iterations=0, status=False, on=None):
        if status:
            return _status_of(tool, next(calls), len(live))
        if on is not None:
            switch.set(on)
        for _ in range(_AWAY[on] if iterations > _AWAY[None] else 0):
            step()  # the caches are as the other modes left them
        collections = _collections()
        sample = measure.timed(step, iterations, counter, synchronize)
        sample["collections"] = (_collections() - collections) / iterations
        return sample

    return {"threads": torch.get_num_threads()}, handle


def _status_of(tool, calls, live):
    """What the tool saw: a bench of a tool that looked away proves nothing."""
    if tool in ("none", "torch"):
        return {"live": live}
    import cumem

    cumem.flush(30)
    status = cumem.status()
    return {"live": live, "calls": calls, "interceptor": status["interceptor"],
            "seen": status["seen"], "lost": status["lost"]}


# -- the parent's side ------------------------------------------------------

# A mode whose base is the same process with the tool taken back.
SWITCHED, OFF = "switched", "off"

def run_case(output, script, case, tools, rounds, iterations, clock):
    """One row.  `tools`: mode -> tool; the first is the base of all ratios.

    torch's detector is some hundred times slower: it gets few and short turns.
    """
    device = output.machine["device"]
    specs = {mode: {**case, "tool": tool, "device": device, "environment":
                    cumem_environment() if tool == "warn" else {}}
             for mode, tool in tools.items()}
    samples, failed, facts = [], {}, {}
    for index in range(rounds):
        if index >= _FEWEST_ROUNDS and not clock.more(least):
            break
        begun = time.monotonic()
        with measure.Team(script, specs) as team:
            # Where processes start slowly, few of them: most of the time is for turns.
            ready = time.monotonic()
            fit = clock.fit(3 * (ready - begun))
            left = min(rounds - index, max(_FEWEST_ROUNDS - index, 1 + fit))
            samples.append(_round(team, specs, iterations, clock.part(left)))
            facts.update({mode: team.ask(mode, status=True) for mode in specs})
            failed.update(team.failed)
        turns = (time.monotonic() - ready) / len(samples[-1][OFF] or [0])
        least = ready - begun + _FEWEST_TURNS * turns
        # Once is enough for what is a hundred times slower.
        specs = {mode: spec for mode, spec in specs.items() if spec["tool"] != "torch"}
    result = {"case": case, "rounds": samples, "failed": failed, "status": facts,
              "ratios": {}}
    base = next(iter(tools))
    for mode in tools:
        result["ratios"][mode] = {
            key: found for key in ("wall_ms", "cpu_ms", "instructions")
            if (found := measure.ratio(samples, mode, OFF if mode == SWITCHED else base,
                                       key))}
        _medians(result, samples, mode)
    output.case(**result)
    return result


def _medians(result, samples, mode):
    flat = [sample for one in samples for sample in one.get(mode, ())]
    for key in ("wall_ms", "collections"):
        result.setdefault(f"median_{key}", {})[mode] = measure.median(
            [sample[key] for sample in flat if key in sample])


def _round(team, specs, iterations, until):
    """Turns of all until then, in time.monotonic(); some at least."""
    samples = {mode: [] for mode in specs}
    slow = [mode for mode, spec in specs.items() if spec["tool"] == "torch"]
    fast = {mode: {"iterations": iterations} for mode in specs
            if mode not in slow and mode != SWITCHED}
    samples[OFF] = []
    for mode in slow:
        for _ in range(2):
            answer = team.ask(mode, iterations=2)
            samples[mode] += [answer] if answer else []
    take_turns(team, samples, fast, {"iterations": _LONGER * iterations}, until)
    return samples


def take_turns(team, samples, others, switched, until):
    """Answers of `others`, {mode: request}, and of the one that is switched, until then."""
    for number in itertools.count():
        if number >= _FEWEST_TURNS and time.monotonic() >= until:
            return
        for mode, answer in team.turn(others).items():
            samples[mode].append(answer)
        for on in (number % 2 == 0, number % 2 == 1):
            answer = team.ask(SWITCHED, **switched, on=on)
            samples[SWITCHED if on else OFF] += [answer] if answer else []


def row_of(result, base):
    """Cells for a table: ms, then ratios with their intervals."""
    cells = []
    for mode, ratios in result["ratios"].items():
        wall = ratios.get("wall_ms")
        if mode in result["failed"] or wall is None:
            cells.append("failed")
        elif mode == base:
            cells.append(measure.number(result["median_wall_ms"][mode]))
        elif wall["ratio"] > 3:
            cells.append(f"x{wall['ratio']:.0f}")
        else:
            cells.append(f"x{wall['ratio']:.4f} [{wall['low']:.4f}, {wall['high']:.4f}]"
                         f" cpu x{_of(ratios, 'cpu_ms')} instr "
                         f"x{_of(ratios, 'instructions')}")
    return cells


def _of(ratios, key):
    return f"{ratios[key]['ratio']:.4f}" if key in ratios else "-"


def sharper(result):
    """Of cumem's two estimates the one with the narrower interval, and its name."""
    known = [(ratios["wall_ms"]["high"] - ratios["wall_ms"]["low"], mode, ratios)
             for mode in ("cumem", SWITCHED)
             if (ratios := result["ratios"][mode]).get("wall_ms")]
    if not known:
        return "failed: " + result["failed"].get("cumem", "?"), {}
    _, mode, ratios = min(known, key=lambda item: item[:2])
    wall = ratios["wall_ms"]
    return (f"{wall['ratio']:.4f}x, at most {wall['high']:.4f}x ("
            + ("processes)" if mode == "cumem" else "on/off)"), ratios)


def holds(ratios, allowed):
    """The rule of the budget: True, False, or None where noise hides the answer.

    Where the interval of time lies on one side of what is allowed, that decides.
    Else, instructions within half of what is allowed and time's upper bound
    within twice of it are enough; without a count of instructions nothing is.
    """
    wall = ratios.get("wall_ms")
    if wall is None:
        return None
    decided = measure.within(wall["low"], wall["high"], allowed)
    if decided is not None:
        return decided
    bounded = wall["high"] <= 1 + 2 * (allowed - 1)
    few = "instructions" in ratios \
        and ratios["instructions"]["ratio"] <= 1 + (allowed - 1) / 2
    return True if bounded and few else None
