# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Each sample is a program a user could have written, with the text that a
person should read beside it, and a twin with the advice applied.

A sample runs twice: plainly, and under CUMEM_WARN_CYCLES=1, as a fork of a process
that has imported torch (one in eight, and those of other frameworks, as a user
runs them: the text must be the same either way); its output and its exit code
must be the same.  Then `cyclereport --format text` must print the
golden text byte for byte, fingerprints masked.  On a GPU the header line names
another device and is left out.  Of what each report names, at most a hundredth of
the bytes may be without the line that allocated them.
"""

import functools
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import cumem
import leak_file
import preloaded

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
CYCLEREPORT = pathlib.Path(cumem.__file__).parent / "bin" / "cyclereport"
CLEAN = "cumem: no dead cycle holds device memory\n"
NO_CUT_SHARE = 0.10
TIMEOUT_S = 120

NAMES = sorted(path.name[: -len(".expected.txt")]
               for path in SAMPLES.glob("*.expected.txt"))
FIXED = sorted(path.stem for path in SAMPLES.glob("*_fixed.py"))


@functools.cache
def has_gpu():
    code = "import torch; raise SystemExit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code]).returncode == 0


@functools.cache
def closed_generators_keep_their_locals():
    """Some CPythons (3.12.3) end a suspended generator without clearing its
    frame: the advice to close it then frees nothing, and cumem says so."""
    import weakref

    class Local:
        pass

    def wait():
        local = Local()
        yield weakref.ref(local)

    generator = wait()
    local = next(generator)
    generator.close()
    return local() is not None


def environment(**extra):
    keep = {name: value for name, value in os.environ.items()
            if not name.startswith("CUMEM_")
            and name not in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")}
    # Samples run side by side: JAX is not to take the whole device.
    return {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **keep, **extra}


def run_program(name, folder, **extra):
    return subprocess.run(
        [sys.executable, str(SAMPLES / (name + ".py"))], cwd=folder,
        env=environment(**extra), capture_output=True, text=True,
        timeout=TIMEOUT_S)


def run_preloaded(name, folder, **extra):
    """The same, by a process that has imported torch."""
    return preloaded.run_file(
        SAMPLES / (name + ".py"), folder=folder, seconds=TIMEOUT_S,
        environment=environment(**extra), optimizes=False)


# Without cumem all samples run in children of one process, so that torch is
# imported once.
PLAIN = """
import json, os, runpy, sys, traceback
import torch

def run(path, stdout):
    os.dup2(os.open(stdout, os.O_CREAT | os.O_WRONLY), 1)
    try:
        runpy.run_path(path, run_name="__main__")
        code = 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)

results = {}
for path in sys.argv[1:]:
    name = os.path.basename(path)[:-3]
    child = os.fork()
    if child == 0:
        run(path, name + ".out")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    results[name] = [code, open(name + ".out").read()]
print(json.dumps(results))
"""


def run_plainly(names, folder):
    """The exit code and the output of each."""
    paths = [str(SAMPLES / (name + ".py")) for name in names]
    done = subprocess.run([sys.executable, "-c", PLAIN, *paths], cwd=folder,
                          env=environment(), stdout=subprocess.PIPE, text=True,
                          check=True)
    return json.loads(done.stdout)


def read_report(folder):
    """The text of a report; nothing found, no file."""
    if not (folder / "leak.json").exists():
        return CLEAN
    done = subprocess.run(
        [str(CYCLEREPORT), "--format", "text", "leak.json"], cwd=folder,
        env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def mask(text):
    return re.sub(r"^(#\d+ .*|   also  held by a cycle )\[[0-9a-f]{6}\]",
                  r"\1[......]", text, flags=re.MULTILINE)


def without_header(text):
    """Without what differs from device to device: the bytes at the top, where its memory is, and
    where the Python object was made, which nobody asks where the block's own stack is known."""
    text = re.sub(r"^memory cuda.*\n(?:  .*\n)*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ +the object: .*\n", "", text, flags=re.MULTILINE)
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines
                   if line == CLEAN or not line.startswith("cumem"))


class Run:
    """One sample, run under cumem, beside its run without."""

    def __init__(self, name, folder, plain, detector=True):
        extra = {"CUMEM_OUTPUT": str(folder / "leak.json")}
        if detector:
            extra["CUMEM_WARN_CYCLES"] = "1"
        self.folder = folder
        run = run_program if is_alone(name) else run_preloaded
        self.traced = run(name, folder, **extra)
        self.text = mask(read_report(folder))
        self.plain_code, self.plain_output = plain()[name]

    def check(self, expected):
        assert self.plain_code == 0
        assert self.traced.returncode == 0, self.traced.stderr
        assert self.traced.stdout == self.plain_output
        if has_gpu():
            assert without_header(self.text) == without_header(expected)
        else:
            assert self.text == expected

    def report(self):
        return json.loads((self.folder / "leak.json").read_text())


def golden(name):
    return (SAMPLES / (name + ".expected.txt")).read_text()


def selected_names(request):
    names = {item.callspec.params["name"] for item in request.session.items
             if item.module is request.module and hasattr(item, "callspec")}
    return sorted(filter(is_runnable, names))


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """The runs of all selected tests, some of them at a time."""
    pool = ThreadPoolExecutor(max_workers=1 + os.cpu_count())
    everything = sorted(filter(is_runnable, {*NAMES, *FIXED}))
    plain = pool.submit(run_plainly, everything,
                        tmp_path_factory.mktemp("plain"))
    jobs = {}

    def start(name):
        if name not in jobs:
            folder = tmp_path_factory.mktemp(name)
            jobs[name] = pool.submit(Run, name, folder, plain.result)
        return jobs[name]

    for name in selected_names(request):
        start(name)
    yield lambda name: start(name).result()
    pool.shutdown(cancel_futures=True)


# Words in the names of samples: the module they need, and whether it works
# with a GPU alone.
NEEDS = {"cupy": ("cupy", True), "jax": ("jax", False),
         "numba": ("numba.cuda", True), "rmm": ("rmm", True),
         "cuda_core": ("cuda.core", True)}


def is_alone(name):
    """Is it a process of its own?"""
    return name in NAMES[::8] or any(word in name for word in NEEDS)


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def what_is_missing(name):
    """What this sample needs and is not here, or None."""
    for word, (module, on_gpu) in NEEDS.items():
        if word in name and not is_installed(module):
            return f"{module} is not installed"
        if word in name and on_gpu and not has_gpu():
            return f"{module} needs a GPU"
    return None


def is_runnable(name):
    return what_is_missing(name) is None


def skip_unless_runnable(name):
    missing = what_is_missing(name)
    if missing is not None:
        pytest.skip(missing)


@pytest.mark.parametrize("name", NAMES)
def test_sample(name, runs):
    skip_unless_runnable(name)
    runs(name).check(golden(name))


@pytest.mark.parametrize("name", FIXED)
def test_advice_mends_it(name, runs):
    skip_unless_runnable(name)
    if "generator" in name and closed_generators_keep_their_locals():
        pytest.skip("this CPython keeps the locals of a closed generator")
    runs(name).check(CLEAN)


def test_every_finding_has_a_mended_twin():
    found = {name for name in NAMES
             if "\n#1 " in (SAMPLES / (name + ".expected.txt")).read_text()}
    assert {name + "_fixed" for name in found} == set(FIXED)


def test_harness_fails_without_the_detector(tmp_path):
    """Positive control: the goldens are not met by a detector that is off."""
    plain = run_plainly(["01_node_pair"], tmp_path)
    run = Run("01_node_pair", tmp_path, lambda: plain, detector=False)
    assert run.traced.stdout == run.plain_output
    with pytest.raises(AssertionError):
        run.check(golden("01_node_pair"))


def test_reports_follow_their_schema(runs):
    """As real processes wrote them."""
    pytest.importorskip("jsonschema")
    paths = [runs(name).folder / "leak.json" for name in NAMES if is_runnable(name)]
    written = [path for path in paths if path.exists()]
    assert written
    assert [line for path in written for line in leak_file.breaches(path)] == []


def test_bytes_have_the_line_that_allocated_them(runs):
    """All but a hundredth of what each report names."""
    reports = {name: runs(name).report() for name in (*NAMES, *FIXED)
               if is_runnable(name) and (runs(name).folder / "leak.json").exists()}
    assert [f"{name}: {problem}" for name, report in reports.items()
            for problem in leak_file.unknown_problems(report)] == []


def test_share_of_findings_without_a_line_to_cut(runs, capsys):
    text = "".join(runs(name).text for name in NAMES if is_runnable(name))
    findings = len(re.findall(r"^#\d+ ", text, flags=re.MULTILINE))
    without = len(re.findall(r"^   cut   not known", text,
                             flags=re.MULTILINE))
    with capsys.disabled():
        print(f"\nfindings of all samples without a line to cut: {without} "
              f"of {findings}")
    assert findings > 0
    assert without <= NO_CUT_SHARE * findings


# Rows of the scenario table that concern the process.

def test_weak_reference_sees_the_collection_once(runs):
    """Row 17: the tool neither clears nor resurrects."""
    assert runs("17_weakref_observer").traced.stdout.splitlines() == [
        "alive: True", "dead, not collected: True 0", "collected: True 1"]


def test_finalizer_runs_once(runs):
    assert runs("16_del_drops_tensor").traced.stdout == "session closed\n"


def test_collector_that_is_off_stays_off(runs):
    """Row 18: found by the scan at exit, not by a collection."""
    (cycle,) = runs("18_gc_off_cycles").report()["cycles"]
    assert cycle["trigger"] == "exit"
    assert cycle["count"] == 6


SCAN = """
import gc, json, weakref
import torch
import cumem

class Node:
    pass

gc.disable()
watched = []
for _ in range(5):
    a, b = Node(), Node()
    a.t = torch.zeros(1024, 1024)
    a.l, b.l = b, a
    watched.append(weakref.ref(a))
del a, b
stats, debug = gc.get_stats(), gc.get_debug()
garbage = len(gc.garbage)
report = cumem.find_cycles(devices="cpu").report
print(json.dumps({
    "unchanged": (stats, debug, garbage)
                 == (gc.get_stats(), gc.get_debug(), len(gc.garbage)),
    "off": not gc.isenabled(),
    "alive": sum(ref() is not None for ref in watched),
    "counts": [cycle["count"] for cycle in report["cycles"]],
    "bytes": sum(cycle["total_bytes"] for cycle in report["cycles"]),
}))
"""


def run_code(code, folder):
    done = subprocess.run([sys.executable, "-c", code], cwd=folder,
                          env=environment(), capture_output=True, text=True,
                          timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_scan_with_the_collector_off_frees_nothing(tmp_path):
    """Row 18: find_cycles() sees what a collection would free."""
    assert run_code(SCAN, tmp_path) == {
        "unchanged": True, "off": True, "alive": 5, "counts": [5],
        "bytes": 5 * 4 * 1024 * 1024}


FROZEN_SCAN = """
import gc, json
import torch
import cumem

class Warmup:
    pass

def main():
    warmup = Warmup()
    warmup.x = torch.zeros(1024, 1024)
    warmup.me = warmup
    gc.freeze()
    del warmup
    gc.collect()
    report = cumem.find_cycles(devices="cpu").report
    return {"classes": [cycle["class"] for cycle in report["cycles"]],
            "frozen": cumem.status()["frozen_objects"],
            "count": gc.get_freeze_count()}

print(json.dumps(main()))
"""


def test_frozen_cycles_are_shown_or_counted(tmp_path):
    """Row 19: find_cycles() shows them where the interpreter lets it, else
    status() gives the number of frozen objects."""
    result = run_code(FROZEN_SCAN, tmp_path)
    if result["frozen"]["how"] == "seen":
        assert result["classes"] == ["frozen"]
    else:
        assert result["classes"] == []
        assert result["frozen"]["count"] == result["count"]
