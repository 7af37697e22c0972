# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What every bench shares: pairs, medians, the machine, the output file.

Two workers, the modes of one case, live side by side and take turns in pieces
of some ten milliseconds, A B B A: what the machine does to one it does to the
other, so ratios of neighbours stay steady where times do not.  A round starts
fresh processes (addresses, hash seeds).  Every raw sample is written.
"""

import argparse
import ctypes
import datetime
import gc
import json
import os
import pathlib
import platform
import random
import re
import select
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
_LONGEST_ANSWER = 400  # seconds


# How a program begins that CUMEM_WARN_CYCLES=1 starts, where it is installed.
STARTED = """import cumem
if cumem.status()["interceptor"] == "none":
    import cumem._start  # a build folder has no cumem.pth
    cumem._start.main()
"""


class Failed(Exception):
    """A worker died or said why it could not answer."""


# -- user instructions ------------------------------------------------------

HARDWARE_INSTRUCTIONS = (0, 1)  # PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS
SOFTWARE_TASK_CLOCK = (1, 1)
_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 1, 1 << 5, 1 << 6


class Counter:
    """Counts an event of this process and of all it starts from now on.

    ``read()`` is None where the machine has no such counter; ``why`` says so.
    Children count once they have ended, threads at once.
    """

    def __init__(self, event=HARDWARE_INSTRUCTIONS):
        self.why = None
        self._file = -1
        number = _SYSCALLS.get(platform.machine())
        if number is None or not sys.platform.startswith("linux"):
            self.why = "no perf_event_open on this system"
            return
        kind, config = event
        attributes = struct.pack("<IIQQQQQ", kind, 112, config, 0, 0, 0,
                                 _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HV)
        attributes = attributes.ljust(112, b"\0")
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = libc.syscall(ctypes.c_long(number),
                                  ctypes.c_char_p(attributes), 0, -1, -1,
                                  ctypes.c_ulong(8))  # PERF_FLAG_FD_CLOEXEC
        if self._file < 0:
            reason = os.strerror(ctypes.get_errno())
            self.why = f"no hardware counter: perf_event_open: {reason}"

    def read(self):
        if self._file < 0:
            return None
        return struct.unpack("<Q", os.read(self._file, 8))[0]


# -- the machine ------------------------------------------------------------

def _cpu_model():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*:\s*(.*)$", text, re.M)
    return found.group(1) if found else platform.processor()


def _gpus():
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version",
             "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.strip().splitlines() if done.returncode == 0 else []


def _versions():
    """Asked of a child, so that the parent holds neither torch nor a context."""
    code = ("import json, importlib.metadata as m\nv = {}\n"
            "for n in ('torch', 'cumem', 'objgraph', 'refcycle'):\n"
            "    try: v[n] = __import__(n).__version__\n"
            "    except AttributeError: v[n] = m.version(n)\n"
            "    except Exception: v[n] = None\n"
            "try:\n    import torch; v['cuda'] = torch.cuda.is_available()\n"
            "except Exception: v['cuda'] = False\nprint(json.dumps(v))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True,
                          text=True, env=environment())
    return json.loads(done.stdout or "{}")


def machine():
    versions = _versions()
    gpus = _gpus()
    cuda = bool(versions.pop("cuda", False)) and bool(gpus)
    return {
        "kind": _slug(gpus[0].split(",")[0]) if cuda else "cpu",
        "device": "cuda" if cuda else "cpu",
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "gpus": gpus,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **versions,
        "instructions": Counter().why or "counted",
        "load": [round(value, 2) for value in os.getloadavg()],
        "time": datetime.datetime.now(datetime.timezone.utc)
        .isoformat(timespec="seconds"),
        **({"commit": known} if (known := commit()) else {}),
    }


def commit():
    """What `git describe` calls the code; None where the folder is no checkout."""
    if not (HERE.parent / ".git").exists():
        return None
    try:
        done = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty"],
                              capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def command():
    """The line by which this script was called."""
    script = f"bench/{pathlib.Path(sys.argv[0]).name}"
    return "python " + shlex.join([script, *sys.argv[1:]])


def head(about):
    """What stands above all results; `about` is what machine() says."""
    return [f"command: {command()}", *(f"{key}: {value}" for key, value in about.items())]


def _slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def environment(**more):
    """For workers: no tool starts by itself, no option of the user's leaks in."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith("CUMEM_")}
    return {**clean, "PYTHONDONTWRITEBYTECODE": "1", **more}


# -- workers ----------------------------------------------------------------

class Worker:
    """A child of the same script that waits to be told what to do next."""

    def __init__(self, script, spec):
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, script, "--worker", json.dumps(spec)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True, env=environment(**spec.get("environment", {})))

    def ready(self):
        return self._answer()

    def ask(self, /, **request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # the answer says why
        return self._answer()

    def _answer(self):
        pipe = self._process.stdout
        if not select.select([pipe], [], [], _LONGEST_ANSWER)[0]:
            raise Failed(f"no answer in {_LONGEST_ANSWER} s")
        line = pipe.readline()
        if not line:
            raise Failed(f"died with {self._process.wait()}: {self._tail()}")
        answer = json.loads(line)
        if isinstance(answer, dict) and "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def _tail(self):
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        return lines[-1] if lines else ""

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()


class Team:
    """The workers of one round, by mode; those that fail are noted and left out."""

    def __init__(self, script, specs):
        self.failed = {}
        self.facts = {}
        self._dice = random.Random(len(specs))
        self._workers = {mode: Worker(script, spec) for mode, spec in specs.items()}
        for mode in list(self._workers):
            self._try(mode, lambda worker: self.facts.update({mode: worker.ready()}))

    def _try(self, mode, action):
        try:
            return action(self._workers[mode])
        except Failed as failure:
            self.failed[mode] = str(failure)
            self._workers.pop(mode).close()
            return None

    def ask(self, mode, /, **request):
        if mode not in self._workers:
            return None
        return self._try(mode, lambda worker: worker.ask(**request))

    def turn(self, requests):
        """One answer of each mode in `requests`, in an order that changes.

        At random: in any fixed one somebody always runs when the caches are warm.
        """
        modes = [mode for mode in requests if mode in self._workers]
        self._dice.shuffle(modes)
        answers = {mode: self.ask(mode, **requests[mode]) for mode in modes}
        return {mode: answer for mode, answer in answers.items() if answer is not None}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self._workers.values():
            worker.close()


def serve(make):
    """The worker's side: `make(spec, counter)` returns (facts, handler)."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tools print is no answer

    def answer(value):
        out.write(json.dumps(value) + "\n")
        out.flush()

    try:
        facts, handle = make(json.loads(sys.argv[2]), Counter())
        answer(facts)
        for line in sys.stdin:
            answer(handle(**json.loads(line)))
    except Exception as error:
        traceback.print_exc()
        answer({"failed": f"{type(error).__name__}: {error}"})
        raise SystemExit(1) from None


def timed(function, count, counter, synchronize=lambda: None):
    """Wall, processor time and instructions of `count` calls, per call.

    A call in which Python made a full collection is not among those timed: it takes
    fifty times as long as another, and falls into few turns of either side.
    """
    synchronize()
    instructions = counter.read()
    walls, cpus = [], []
    for _ in range(count):
        young = gc.get_count()[2]
        cpu = time.process_time_ns()
        start = time.perf_counter_ns()
        function()
        end = time.perf_counter_ns()
        if gc.get_count()[2] >= young:  # a full collection sets it to 0
            walls.append(end - start)
            cpus.append(time.process_time_ns() - cpu)
    synchronize()
    sample = {}
    if walls:
        sample = {"wall_ms": statistics.fmean(walls) / 1e6, "cpu_ms": statistics.fmean(cpus) / 1e6}
    if instructions is not None:
        sample["instructions"] = (counter.read() - instructions) / count
    return sample


# -- statistics -------------------------------------------------------------

def median(values):
    return statistics.median(values) if values else None


def interval(values):
    """The median's 95 % interval by order statistics; (None, None) without values.

    Of five values or fewer it is all of them.
    """
    values, count = sorted(values), len(values)
    if not values:
        return None, None
    out, ways, tail = 0, 1, 1  # of 2 ** count, which thousands of values make no float of
    while 40 * tail <= 1 << count and 2 * (out + 1) < count:
        ways = ways * (count - out) // (out + 1)
        out += 1
        tail += ways
    at = max(out - 1, 0)
    return values[at], values[count - 1 - at]


def within(low, high, allowed):
    """Whether all of an interval is; None: it lies on both sides, or there is none."""
    if low is None or low <= allowed < high:
        return None
    return high <= allowed


def beyond_noise(added, again):
    """Whether a cost can be told from nothing, of differences to one base each.

    `again`: of a second turn with nothing.  Noise is how far the median of these may be
    from 0, by its 95 % interval; the cost is within it where its own interval reaches
    there: one statistic against the same one, for single turns differ by far more.
    Returns {"cost", "low", "high", "noise", "holds"}; None: there are too few.
    """
    if min(len(added), len(again)) < 2:
        return None
    (low, high), noise = interval(added), max(map(abs, interval(again)))
    return {"cost": median(added), "low": low, "high": high, "noise": noise,
            "holds": low <= noise}


def ratio(rounds, mode, base, key="wall_ms", resamples=2000):
    """How much `mode` costs, as a multiple of `base`.

    `rounds`: per round {mode: [sample, ...]}; sample i of both is one pair.
    The median of the pairs' ratios, and its 95 % interval: rounds, then the pairs in
    them, are drawn again with replacement (seeded, so that it can be repeated).
    """
    pairs = []
    for one in rounds:
        found = [a[key] / b[key] for a, b in zip(one.get(mode, ()), one.get(base, ()))
                 if key in a and key in b and b[key] > 0]
        if found:
            pairs.append(found)
    if not pairs:
        return None
    dice = random.Random(1)
    medians = sorted(
        statistics.median([value for group in dice.choices(pairs, k=len(pairs))
                           for value in dice.choices(group, k=len(group))])
        for _ in range(resamples))
    return {"ratio": statistics.median([value for group in pairs for value in group]),
            "low": medians[int(0.025 * resamples)],
            "high": medians[int(0.975 * resamples)],
            "of_sums": _ratio_of_sums(rounds, mode, base, key),
            "pairs": sum(map(len, pairs))}


def _ratio_of_sums(rounds, mode, base, key):
    """Not robust, but nothing that is rare and long escapes it."""
    above = below = 0
    for one in rounds:
        for a, b in zip(one.get(mode, ()), one.get(base, ())):
            if key in a and key in b:
                above += a[key]
                below += b[key]
    return above / below if below else None


# -- time -------------------------------------------------------------------

class Clock:
    """Shares the seconds that are left equally among the cases that are left."""

    def __init__(self, seconds, cases):
        self._end = time.monotonic() + seconds
        self._left = cases
        self._until = 0

    def begin(self):
        now = time.monotonic()
        self._until = now + max(0, self._end - now) / max(1, self._left)
        self._left -= 1
        return now < self._end

    def more(self, used=0):
        """Is there room in this case for something that takes `used` seconds?"""
        return time.monotonic() + used < self._until

    def fit(self, seconds):
        """How many things that take so long there is room for in this case."""
        return max(0, int((self._until - time.monotonic()) / max(seconds, 1e-9)))

    def part(self, parts):
        """When the first of so many equal parts of what is left of this case ends."""
        now = time.monotonic()
        return now + (self._until - now) / parts


# -- output -----------------------------------------------------------------

def number(value, digits=3):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if value and abs(value) < 0.001:
        return f"{value:.2g}"
    return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:,.0f}"


def table(heads, rows):
    cells = [list(map(str, row)) for row in [heads, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths)))
                     .rstrip() for row in cells)


class Output:
    """bench/results/NAME-MACHINE.json with everything, .txt to be read."""

    def __init__(self, name, title, options):
        self.machine = machine()
        self.budgets = []
        self._name, self._title = name, title
        self._folder = pathlib.Path(options.output or HERE / "results")
        self._options = {key: value for key, value in vars(options).items()
                         if key not in ("output", "worker")}
        self._cases, self._texts = [], []

    def case(self, **facts):
        self._cases.append(facts)

    def text(self, *lines):
        self._texts.extend(lines)
        print("\n".join(lines), flush=True)

    def budget(self, what, allowed, measured, holds):
        """`holds`: True, False, or None where it was not measured."""
        self.budgets.append({"what": what, "allowed": allowed,
                             "measured": measured, "holds": holds})

    def write(self):
        words = {True: "holds", False: "MISSED", None: "not measured"}
        heads = ["budget", "allowed", "measured", ""]
        rows = [[row["what"], row["allowed"], row["measured"], words[row["holds"]]]
                for row in self.budgets]
        if rows:
            self.text("", table(heads, rows))
        document = {"bench": self._name, "title": self._title,
                    "command": command(), "machine": self.machine,
                    "options": self._options, "budgets": self.budgets,
                    "cases": self._cases}
        stem = f"{self._name}-{self.machine['kind']}"
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{stem}.json").write_text(
            json.dumps(_rounded(document), separators=(",", ":")) + "\n")
        (self._folder / f"{stem}.txt").write_text("\n".join(
            [self._title, "", *head(self.machine), "", *self._texts])
            + "\n")
        print(f"written: {self._folder / stem}.json, .txt", file=sys.stderr)


def _rounded(value):
    """Six digits are more than any clock here can tell."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def arguments(description, seconds):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=seconds,
                        help=f"time for all cases together (default {seconds})")
    parser.add_argument("--quick", action="store_true",
                        help="fewer and smaller cases")
    parser.add_argument("--output", help="folder of the results "
                        "(default bench/results)")
    return parser


def run(main, make):
    """The script's last line: a worker where it was started as one."""
    if len(sys.argv) > 2 and sys.argv[1] == "--worker":
        serve(make)
    else:
        main()
