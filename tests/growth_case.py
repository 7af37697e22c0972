# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A growth sample: its program, what a report should say of it, what one says.

NAME.expected.json is a list of findings: "verdict" (leak, lingering, or cycle
for a dead cycle); "alloc" and "held", lines as "FILE:{LEAK} FUNCTION", where
{LEAK} is the line that ends in `# LEAK`; "holder", texts that occur in this
order in the path from the named root; "advice", texts that all occur in it
(a|b: one of them); "category"; "names"; the ranges "bytes_per_iteration", "bytes",
"since_iteration", "bytes_each".  A list of lines or of categories means any.
Spelling marks and case do not count.
"""

import functools
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass, field

import preloaded
from leak_file import unknown_problems
from process import environment

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples" / "growth"
SECONDS = 120

# What holds less in all is in the report, and warns nobody: REPORT.md.
TOLD_BYTES = 1 << 20
ALARMS = ("leak", "lingering")
FIRST_TEN = [0, 10]

# Samples that run on a GPU alone, and what they import besides torch.
ON_GPU = {"42_cudagraph_pool": "torch", "45_nccl_comm": "torch", "48_cupy_exception": "cupy"}


def names():
    return sorted(path.stem for path in SAMPLES.glob("*.py"))


def twins():
    return sorted(path.stem for path in (SAMPLES / "fixed").glob("*.py"))


def program(name, fixed=False):
    return SAMPLES / ("fixed" if fixed else "") / (name + ".py")


@functools.cache
def has_gpu():
    code = "import torch; raise SystemExit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code]).returncode == 0


def what_is_missing(name):
    """What this sample needs and is not here, or None."""
    module = ON_GPU.get(name)
    if module is None:
        return None
    if importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    return None if has_gpu() else "needs a GPU"


def markers(source):
    """The line of each `# LEAK`, `# HELD x`, ... at the end of one."""
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        match = re.search(r"# ((?:LEAK|HELD|ALSO)(?: \w+)?)$", line)
        if match:
            assert match[1] not in found, f"two lines are marked {match[1]}"
            found[match[1]] = number
    return found


def as_list(value):
    return value if isinstance(value, list) else [value]


def expected_of(name):
    lines = markers(program(name).read_text())
    findings = json.loads((SAMPLES / (name + ".expected.json")).read_text())
    for finding in findings:
        for key in ("alloc", "held"):
            if key in finding:
                finding[key] = [text.format_map(lines) for text in as_list(finding[key])]
    return findings


def programs(chosen=()):
    """(label, path, findings) of each program and twin that can run here."""
    for name in names():
        if (not chosen or name in chosen) and what_is_missing(name) is None:
            yield name, program(name), expected_of(name)
            if name in twins():
                yield f"fixed/{name}", program(name, fixed=True), []


def programs_on_cpu(chosen=()):
    return [one for one in programs(chosen) if one[1].stem not in ON_GPU]


def plainly(text):
    """Without case, code marks, quotes and dots: .cache is cache."""
    return re.sub(r"[`'\".]", "", text).lower()


def occur_in_order(texts, whole):
    place, whole = 0, plainly(whole)
    for text in map(plainly, texts):
        place = whole.find(text, place)
        if place < 0:
            return False
        place += len(text)
    return True


def within(value, limits):
    return value is not None and limits[0] <= value <= limits[1]


# What a report says.

def place_of(frame):
    return f"{pathlib.PurePath(frame['filename']).name}:{frame['line']} {frame['name'].rpartition('.')[2]}"


def alloc_of(report, entry):
    for site in report["sites"]:
        if site["id"] == entry.get("site") and site.get("user_frame") is not None:
            return place_of(site["frames"][site["user_frame"]])
    return None


def path_of(entry):
    return " > ".join(f"{step.get('edge') or ''} {step.get('annotation') or ''}".strip()
                      for step in entry.get("holder") or [])


def bytes_of(entry):
    if entry.get("bytes") is not None:
        return entry["bytes"]
    return max((point[2] for point in entry.get("series") or []), default=0)


def alarms_of(report):
    """The entries that a person is told of."""
    return [entry for entry in report["growth"]
            if entry["verdict"] in ALARMS and bytes_of(entry) >= TOLD_BYTES]


def dead_of(report):
    return [cycle for cycle in report["cycles"] if cycle["peak_bytes"] >= TOLD_BYTES]


def cut_of(report, cycle):
    texts = {edge["id"]: edge["annotation"] for edge in report["edges"]}
    return " > ".join(texts.get(edge) or "" for edge in cycle["cut"])


# What is wrong with it.

def advice_problems(finding, advice):
    for text in as_list(finding["advice"]):
        if not any(word in plainly(advice) for word in plainly(text).split("|")):
            yield f"advice {advice!r} without {text!r}"


def entry_problems(finding, entry):
    """One entry of "growth" beside what should be there."""
    path, advice = path_of(entry), entry.get("advice") or ""
    if not occur_in_order(finding["holder"], path):
        yield f"holder {path!r}, not {finding['holder']}"
    yield from advice_problems(finding, advice)
    if "category" in finding and entry.get("category") not in as_list(finding["category"]):
        yield f"category {entry.get('category')!r}, not {finding['category']!r}"
    yield from made_problems(finding, entry)
    yield from since_problems(finding, entry)


def made_problems(finding, entry):
    made = [place_of(frame) for frame in entry.get("made_at") or []]
    if made and "held" in finding and not set(made) & set(finding["held"]):
        yield f"made at {made}, not {finding['held']}"


def since_problems(finding, entry):
    limits = finding.get("since_iteration", FIRST_TEN)
    slices = "bytes_per_iteration" not in finding
    if finding["verdict"] == "leak" and not slices \
            and not within(entry.get("since_iteration"), limits):
        yield f"since iteration {entry.get('since_iteration')}, not {limits}"


def sum_problems(finding, entries):
    """Several sites may share one leak: their sum counts."""
    rate = sum(entry.get("bytes_per_iteration") or 0 for entry in entries)
    if "bytes_per_iteration" in finding and not within(rate, finding["bytes_per_iteration"]):
        yield f"{rate} bytes per iteration, not {finding['bytes_per_iteration']}"
    total = sum(map(bytes_of, entries))
    if "bytes" in finding and not within(total, finding["bytes"]):
        yield f"{total} bytes, not {finding['bytes']}"
    known = {name for entry in entries for name in entry.get("names") or []}
    if not known >= set(finding.get("names", [])):
        yield f"names {sorted(known)}, not {finding['names']}"


def is_about(finding, alloc, entry):
    """The same verdict on the same line; without a line, the same category."""
    if entry["verdict"] != finding["verdict"]:
        return False
    if "alloc" in finding:
        return alloc in finding["alloc"]
    return entry.get("category") in as_list(finding["category"])


def cycle_problems(finding, report, cycle):
    cut, advice = cut_of(report, cycle), cycle["advice"] or ""
    if cycle["class"] != finding["class"]:
        yield f"class {cycle['class']!r}, not {finding['class']!r}"
    if not occur_in_order(finding["holder"], cut):
        yield f"cut {cut!r}, not {finding['holder']}"
    yield from advice_problems(finding, advice)
    if not within(cycle["bytes_each"], finding["bytes_each"]):
        yield f"{cycle['bytes_each']} bytes each, not {finding['bytes_each']}"


@dataclass
class Judgement:
    """Of one report: findings as written, found but described otherwise, not
    found; and alarms that nobody expected."""

    right: int = 0
    wrong: list = field(default_factory=list)
    missed: list = field(default_factory=list)
    false_alarms: list = field(default_factory=list)
    without_a_line: int = 0
    verdicts: list = field(default_factory=list)

    def problems(self):
        return self.wrong + self.missed + self.false_alarms

    def take(self, finding, found, problems):
        if not found:
            self.missed.append(f"missed: {finding['verdict']} of {finding.get('alloc')}")
        elif problems:
            self.wrong.append(f"{finding['verdict']} of {finding.get('alloc')}: "
                              + "; ".join(problems))
        else:
            self.right += 1


def judge_entries(self, findings, report):
    entries = [(alloc_of(report, entry), entry) for entry in alarms_of(report)]
    unclaimed = list(entries)
    for finding in findings:
        found = [pair for pair in entries if is_about(finding, *pair)]
        unclaimed = [pair for pair in unclaimed if pair not in found]
        found = [entry for _, entry in found]
        problems = [text for entry in found for text in entry_problems(finding, entry)]
        self.take(finding, found, problems + list(sum_problems(finding, found)))
        self.without_a_line += any("held" in finding and not entry.get("made_at")
                                   for entry in found)
    self.false_alarms += [f"false alarm: {entry['verdict']} of {alloc}, held by {path_of(entry)}"
                          for alloc, entry in unclaimed]


def judge_cycles(self, findings, report):
    dead = dead_of(report)
    for finding, cycle in zip(findings, dead):
        self.take(finding, [cycle], list(cycle_problems(finding, report, cycle)))
    for finding in findings[len(dead):]:
        self.take(finding, [], [])
    self.false_alarms += [f"false alarm: dead cycle cut at {cut_of(report, cycle)}"
                          for cycle in dead[len(findings):]]


def judge_told(self, findings, stderr):
    """A leak that the last report has no more was told all the same."""
    if not self.false_alarms and all(one["verdict"] != "leak" for one in findings):
        told = dict.fromkeys(re.findall(r"^(?:\[.*?\] )?(#\d+ LEAK .*?)(?=  |$)", stderr, re.MULTILINE))
        self.false_alarms += [f"false alarm: told, {line}" for line in told]


def judge(findings, report, stderr=""):
    self = Judgement()
    judge_entries(self, [one for one in findings if one["verdict"] != "cycle"], report)
    judge_cycles(self, [one for one in findings if one["verdict"] == "cycle"], report)
    judge_told(self, findings, stderr)
    self.wrong += unknown_problems(report)
    self.verdicts = [entry["verdict"] for entry in alarms_of(report)]
    self.verdicts += ["cycle"] * len(dead_of(report))
    return self


# Running one.

NOTHING = {"sites": [], "edges": [], "cycles": [], "growth": []}


def read_report(folder):
    """Nothing found, no file."""
    path = folder / "leak.json"
    return json.loads(path.read_text()) if path.exists() else NOTHING


def run_program(path, folder, **variables):
    """One thread of arithmetic: samples run side by side."""
    return subprocess.run([sys.executable, str(path)], cwd=folder,
                          env=environment(OMP_NUM_THREADS=1, **variables),
                          capture_output=True, text=True, timeout=SECONDS)


def run_observed(path, folder):
    return run_program(path, folder, **observed_variables(folder))


def observed_variables(folder):
    return {"CUMEM_WARN_CYCLES": 1, "CUMEM_OUTPUT": folder / "leak.json"}


def run_preloaded(path, folder):
    """The same, by a process that has imported torch."""
    return preloaded.run_file(
        path, folder=folder, seconds=SECONDS, optimizes=True,
        environment=environment(OMP_NUM_THREADS=1, **observed_variables(folder)))


def summary(judgements, leak_free):
    """The one line: recall and false alarms over all reports."""
    right = sum(one.right for one in judgements)
    wrong = sum(len(one.wrong) for one in judgements)
    missed = sum(len(one.missed) for one in judgements)
    alarms = sum(len(one.false_alarms) for one in judgements)
    without = sum(one.without_a_line for one in judgements)
    total = right + wrong + missed
    return (f"growth samples: recall {right / total if total else 0:.3f} "
            f"({right} of {total} findings as written, {wrong} found but described otherwise, "
            f"{missed} missed; {without} without the line that holds), "
            f"{alarms} false alarms in {len(judgements)} programs ({leak_free} without a leak)")
