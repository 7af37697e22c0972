# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""CPython's own tests under the hook, in every process that they start.

For each interpreter found (interceptor_probe/found.py) and each interceptor:
which tests ran, failed and were skipped must be as without the hook.  A
difference counts when a second pair of runs shows it again.

CUMEM_CONFORMANCE=probe   the interceptors alone (the default), and on this
                          interpreter the package with a few of the files
CUMEM_CONFORMANCE=cumem   the installed package, where these interpreters can
                          import it, as CUMEM_WARN_CYCLES=1 starts it
CUMEM_CONFORMANCE_FILES   other test files than the default ones
"""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PROBE = HERE / "interceptor_probe"
sys.path.insert(0, str(PROBE))

import found  # noqa: E402

WHAT = os.environ.get("CUMEM_CONFORMANCE", "probe")
KINDS = ["sentinel", "saveall"]
FILES = (os.environ.get("CUMEM_CONFORMANCE_FILES") or
         "test_gc test_weakref test_finalization test_weakset "
         "test_generators test_coroutines test_asyncgen test_threading "
         "test_frame test_exceptions test_sys test_atexit").split()
PACKAGE_FILES = ["test_gc", "test_weakref", "test_finalization"]
# R10: a full collection clears free lists before its stop callbacks, and the
# fallback frees after it.
ACCEPTED = {"test.test_sys.SysModuleTest.test_getallocatedblocks"}
if WHAT == "cumem":  # its start imports logging, and that threading
    ACCEPTED |= {"test.test_threading.ThreadTests."
                 "test_import_from_another_thread"}
SECONDS = 900
START = "import interceptor_start"


def has_tests(python):
    done = subprocess.run([python, "-I", "-c", "import test.test_gc"],
                          capture_output=True)
    return done.returncode == 0


def make_environment(python, folder):
    """Its interpreter, and where its packages are."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    return (str(folder / "bin" / "python"),
            next(folder.glob("lib/python*/site-packages")))


class Probe:
    """A virtual environment whose .pth file starts the hook."""

    def __init__(self, python, folder):
        self.scratch = folder
        self.python, packages = make_environment(python, folder)
        built = found.probe_folder(python, str(folder / "probe"))
        for file in pathlib.Path(built).glob("interceptor_probe*.so"):
            shutil.copy(file, packages)
        shutil.copy(PROBE / "interceptor_start.py", packages)
        (packages / "interceptor_start.pth").write_text(START + "\n")

    def environment(self, kind, log):
        return found.plain_environment(PROBE_KIND=kind or "",
                                       PROBE_LOG=log)


class Installed:
    """The package, as a user starts it."""

    def __init__(self, python, folder):
        self.python = python
        self.scratch = folder
        folder.mkdir()
        done = subprocess.run([python, "-c", "import cumem._core"],
                              capture_output=True)
        if done.returncode != 0:
            pytest.skip(f"cumem is not installed for {python}")
        self.prove()

    def prove(self):
        """The .pth file starts it, with the interceptor that is asked for."""
        for kind in KINDS:
            started = subprocess.run(
                [self.python, "-I", "-c",
                 "import sys; print(sys.modules['cumem'].status()"
                 "['interceptor'] if 'cumem' in sys.modules else None)"],
                env=self.environment(kind, ""), cwd=self.scratch,
                capture_output=True, text=True)
            assert started.stdout.strip() == kind, started.stderr

    def environment(self, kind, log):
        if kind is None:
            return found.plain_environment()
        return found.plain_environment(
            CUMEM_WARN_CYCLES="1", CUMEM_INTERCEPTOR=kind,
            CUMEM_OUTPUT=str(self.scratch / "leak-%p.json"))


class Imported(Installed):
    """The package that these tests import, in an environment of its own."""

    def __init__(self, folder):
        cumem = pytest.importorskip("cumem")
        self.scratch = folder
        self.python, packages = make_environment(sys.executable, folder)
        (packages / "cumem").symlink_to(pathlib.Path(cumem.__file__).parent)
        for name in ("cumem.pth", "cumem.start", "_cumem_start.py"):
            shutil.copy(HERE.parent / "pyext" / name, packages)
        self.prove()


@pytest.fixture(scope="session", params=found.pythons(), ids=found.label)
def place(request, tmp_path_factory):
    if not has_tests(request.param):
        pytest.skip(f"{request.param} has no test package")
    folder = tmp_path_factory.mktemp("conformance") / "place"
    try:
        return (Installed if WHAT == "cumem" else Probe)(request.param, folder)
    except FileNotFoundError as error:
        pytest.skip(str(error))


def outcome_of(case):
    for kind in ("failure", "error", "skipped"):
        if case.find(kind) is not None:
            return kind
    return "passed"


def run(place, file, kind):
    """{test: outcome} and, by the name "exit", regrtest's exit code."""
    scratch = place.scratch / f"{file}-{kind}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    log = scratch / "log"
    report = scratch / "junit.xml"
    done = subprocess.run(
        [place.python, "-m", "test", "--fail-env-changed", "--junit-xml",
         str(report), file],
        env=place.environment(kind, str(log)), cwd=scratch,
        capture_output=True, text=True, timeout=SECONDS)
    outcomes = {"exit": str(done.returncode)}
    if report.exists():
        for case in xml.parse(report).iter("testcase"):
            name = f"{case.get('classname') or ''}.{case.get('name')}"
            outcomes[name.lstrip(".")] = outcome_of(case)
    lines = log.read_text().split("\n") if log.exists() else []
    hooked = sum(int(line.split()[0]) for line in lines if line)
    return outcomes, hooked, done.stdout[-3000:] + done.stderr[-3000:]


@contextlib.contextmanager
def all_runs(place, files):
    """All runs in the order of the tests, as many at a time as there are
    cores; those without a hook (kind None) serve both interceptors."""
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)
    yield {(file, kind): pool.submit(run, place, file, kind)
           for file in files for kind in (None, *KINDS)}
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def runs(place):
    with all_runs(place, FILES) as started:
        yield started


@pytest.fixture(scope="session")
def imported(tmp_path_factory):
    """The package's place, and its runs."""
    if not has_tests(sys.executable):
        pytest.skip(f"{sys.executable} has no test package")
    place = Imported(tmp_path_factory.mktemp("conformance") / "place")
    with all_runs(place, PACKAGE_FILES) as started:
        yield place, started


def differences(stock, hooked):
    names = stock.keys() | hooked.keys()
    found_here = {name: (stock.get(name), hooked.get(name))
                  for name in names
                  if stock.get(name) != hooked.get(name)
                  and name not in ACCEPTED}
    if set(found_here) == {"exit"} and any(
            stock.get(name) != hooked.get(name) for name in ACCEPTED):
        return {}
    return found_here


def check(place, runs, file, kind):
    stock, _, text = runs[file, None].result()
    assert len(stock) > 1, text
    hooked, stops, text = runs[file, kind].result()
    if isinstance(place, Probe):
        assert stops > 0, "no collection was seen"
    differ = differences(stock, hooked)
    if differ:
        again = differences(run(place, file, None)[0],
                            run(place, file, kind)[0])
        differ = {name: differ[name] for name in differ.keys() & again.keys()}
    assert not differ, text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", FILES)
def test_conformance(place, runs, file, kind):
    check(place, runs, file, kind)


@pytest.mark.skipif(WHAT == "cumem", reason="the installed one runs them all")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", PACKAGE_FILES)
def test_conformance_of_the_package(imported, file, kind):
    check(*imported, file, kind)
