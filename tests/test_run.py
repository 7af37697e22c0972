# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""`cumem run`: its exit codes, and the signals that reach it."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time

import pytest

from process import LEAK, SECONDS, environment, reports

LITTLE = LEAK.replace("1 << 20", "1 << 12")


def cumem_run(folder, *arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "cumem", "run", *arguments], cwd=folder, capture_output=True,
        text=True, env=environment(**variables), timeout=SECONDS,
    )  # fmt: skip


def test_cumem_run_observes_one_command(tmp_path):
    (tmp_path / "train.py").write_text(LEAK + "print(sys.argv[1:]); sys.exit(7)")
    done = cumem_run(tmp_path, "-o", "r.json", "train.py", "--lr", "1")
    assert (done.returncode, done.stdout) == (7, "['--lr', '1']\n")
    assert "DEAD CYCLE x3" in done.stderr and reports(tmp_path) == ["r.json"]
    done = cumem_run(tmp_path, "--error-exitcode", "42", "train.py")
    assert done.returncode == 42
    done = cumem_run(tmp_path, "--error-exitcode", "42", "-m", "this")
    assert done.returncode == 0 and "Zen" in done.stdout
    done = cumem_run(tmp_path, "-c", LEAK + "print(sys.argv); sys.exit(7)", "-m", "1")
    assert (done.returncode, done.stdout) == (7, "['-c', '-m', '1']\n")
    assert "DEAD CYCLE x3" in done.stderr


@pytest.mark.parametrize("code", ["256", "0", "-1", "three"])
def test_no_exit_code_that_would_read_as_success(tmp_path, code):
    (tmp_path / "train.py").write_text("print('ran')")
    done = cumem_run(tmp_path, f"--error-exitcode={code}", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"not an exit code: '{code}'; expected a number from 1 to 255" in done.stderr


def test_a_command_is_no_script(tmp_path):
    (tmp_path / "train.py").write_text("print('ran')")
    done = cumem_run(tmp_path, "python3", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(
        "cumem: error: 'python3' is a command, not a script: cumem run script.py, cumem run -m"
        " module, or CUMEM_WARN_CYCLES=1 python3 ...\n"
    )
    (tmp_path / "python3").write_text("print('mine')")
    assert cumem_run(tmp_path, "python3").stdout == "mine\n"


GROWS = """
import torch
layer, kept = torch.nn.Linear(512, 512), []
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(40):
    kept.append(layer(torch.ones(512, 512)))
    kept[-1].sum().backward()
    optimizer.step(); optimizer.zero_grad()
"""


@pytest.mark.parametrize("program, more, told", [
    (GROWS, [], True), (LITTLE, [], False), (LITTLE, ["--min-bytes", "0"], True),
    (LITTLE, ["--min-bytes", "1KiB"], True), (LEAK, ["--min-bytes", "1GiB"], False)])
def test_the_exit_code_says_what_the_warnings_say(tmp_path, program, more, told):
    (tmp_path / "train.py").write_text(program)
    done = cumem_run(tmp_path, "--error-exitcode", "42", *more, "train.py")
    assert ("\n#1 " in done.stderr) == told, done.stderr
    assert done.returncode == (42 if told else 0), done.stderr


# The last reference is stored by a line of the standard library.
THROUGH_LIBRARIES = {
    "future": """
import concurrent.futures
def work(future, tensor):
    try:
        raise RuntimeError("bad")
    except RuntimeError as error:
        future.set_exception(error)
def make():
    future = concurrent.futures.Future()
    work(future, torch.zeros(1 << 20))
    try:
        future.result()
    except RuntimeError:
        pass
""",
    "context manager": """
import contextlib
class Session:
    def __init__(self):
        self.tensor = torch.zeros(1 << 20)
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(self.scope())
    @contextlib.contextmanager
    def scope(self):
        yield self
make = Session
""",
    "queue": """
import queue
class Worker:
    def __init__(self):
        self.jobs = queue.Queue()
        self.tensor = torch.zeros(1 << 20)
        self.jobs.put((self, 3))
make = Worker
""",
    "user dict": """
import collections
def make():
    config = collections.UserDict()
    config["tensor"] = torch.zeros(1 << 20)
    config["sub"] = collections.UserDict(root=config)
""",
    "weak keys": """
import weakref
class Owner:
    def __init__(self):
        self.tensor = torch.zeros(1 << 20)
        self.subs = weakref.WeakKeyDictionary()
        self.subs[self] = self
make = Owner
""",
}


@pytest.mark.parametrize("name", THROUGH_LIBRARIES)
def test_what_the_program_stores_through_a_library_is_its_own(tmp_path, name):
    (tmp_path / "train.py").write_text(
        f"import gc, torch\n{THROUGH_LIBRARIES[name]}\nfor _ in range(3): make()\ngc.collect()\n")
    done = cumem_run(tmp_path, "--error-exitcode", "42", "train.py")
    assert "\n#1 DEAD CYCLE x3, 4.0 MiB each" in done.stderr, done.stderr
    assert done.returncode == 42, done.stderr


def test_a_cycle_of_a_librarys_own_is_hidden_and_said_so(tmp_path):
    (tmp_path / "train.py").write_text("""
import gc, torch
from unittest import mock
mock.MagicMock(return_value=torch.zeros(1 << 20))
gc.collect()
""")
    done = cumem_run(tmp_path, "-o", "r.json", "--error-exitcode", "42", "train.py")
    assert done.stderr.startswith("cumem: up to 4.0 MiB of cpu tensors was dead"), done.stderr
    assert done.stderr.endswith("\nhidden: 1 in libraries (python) | cyclereport --all r.json\n"), done.stderr
    assert "#1" not in done.stderr
    assert done.returncode == 0


def test_a_report_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "train.py").write_text(LEAK)
    done = cumem_run(tmp_path, "-o", "no/such.json", "--error-exitcode", "42", "train.py")
    assert "report is not written to no/such.json: No such file" in done.stderr, done.stderr
    assert done.returncode == 42, "it was told all the same"


@pytest.mark.parametrize("ending", [
    "os._exit(0)", "os.kill(os.getpid(), 9)", "os.execv('/bin/true', ['true'])",
    "os.execv(sys.executable, [sys.executable, '-c', 'pass'])"])
@pytest.mark.parametrize("size, told", [("1 << 20", True), ("1 << 12", False)])
def test_what_was_told_counts_however_the_program_ends(tmp_path, ending, size, told):
    (tmp_path / "train.py").write_text(LEAK.replace("1 << 20", size) + f"""
cumem = sys.modules["cumem"]
assert cumem.flush(60)
{ending}
""")
    done = cumem_run(tmp_path, "--error-exitcode", "42", "train.py")
    assert ("\n#1 DEAD CYCLE x3" in done.stderr) == told, done.stderr
    assert done.returncode == (42 if told else 137 if "kill" in ending else 0)


# Says how often it is interrupted; two in a row may be one to Python's handler.
INTERRUPTED = """
import os, signal, sys, time
reading, writing = os.pipe()
os.set_blocking(writing, False)
signal.set_wakeup_fd(writing)
for name in "HUP", "INT", "QUIT", "TERM", "USR1", "USR2":
    signal.signal(signal.Signals["SIG" + name], lambda *_: None)
print("ready", os.getppid(), flush=True)
heard = b""
while len(heard) < 5: heard += os.read(reading, 99)
time.sleep(0.5)
os.write(writing, b"-")
heard += os.read(reading, 99)
print(*map(signal.strsignal, set(heard[:-1])), len(heard) - 1, flush=True)
sys.exit(5)
"""


def interrupted(process, interrupt):
    """What a program says that is interrupted five times."""
    for _ in range(5):
        interrupt()
        time.sleep(0.3)
    out, _ = process.communicate(timeout=SECONDS)
    return out, process.returncode


@pytest.mark.parametrize("own_group", [False, True])
def test_an_interrupt_of_the_terminal_reaches_the_program_once(tmp_path, own_group):
    """Also one in a group of its own, which the terminal does not know."""
    apart = "import os; os.setpgid(0, 0)\n" if own_group else ""
    (tmp_path / "train.py").write_text(apart + INTERRUPTED)
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cumem", "run", "train.py"], cwd=tmp_path, env=environment(),
        stdin=end, stdout=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))  # fmt: skip
    try:
        assert process.stdout.readline().startswith(b"ready")
        done = interrupted(process, lambda: os.write(terminal, b"\x03"))
    finally:
        process.kill()
        os.close(end), os.close(terminal)
    assert done == (b"Interrupt 5\n", 5)


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2"])
def test_a_signal_that_a_person_sends_reaches_the_program_once(tmp_path, name):
    number = signal.Signals[f"SIG{name}"]
    (tmp_path / "train.py").write_text(INTERRUPTED)
    process = subprocess.Popen([sys.executable, "-m", "cumem", "run", "train.py"], cwd=tmp_path,
                               env=environment(), stdout=subprocess.PIPE)
    assert process.stdout.readline().split() == [b"ready", b"%d" % process.pid]
    done = interrupted(process, lambda: process.send_signal(number))
    assert done == (f"{signal.strsignal(number)} 5\n".encode(), 5)


@pytest.mark.parametrize("ignored", ["CHLD", "INT"])
def test_signals_that_are_ignored_keep_nobody_waiting(tmp_path, ignored):
    (tmp_path / "train.py").write_text("import sys, time; time.sleep(0.5); sys.exit(5)")
    number = signal.Signals[f"SIG{ignored}"]
    done = subprocess.run(
        [sys.executable, "-m", "cumem", "run", "train.py"], cwd=tmp_path, env=environment(),
        timeout=SECONDS, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))  # fmt: skip
    assert done.returncode == 5


def test_cumem_run_names_what_is_wrong(tmp_path):
    done = cumem_run(tmp_path, "--min-bytes", "much", "x.py")
    assert done.returncode == 2 and "much" in done.stderr
    done = cumem_run(tmp_path, "-o", "%q.json", "x.py")
    assert done.returncode == 2 and "not a file name: '%q.json'; expected %p" in done.stderr
    assert cumem_run(tmp_path).returncode == 2
    assert cumem_run(tmp_path, "missing.py").returncode == 2
