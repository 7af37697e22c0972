# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Programs for the tests: each runs in a process of its own, as a user's would."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import preloaded

# Some rows of the reliability programme take minutes; make test runs them shorter.
WHOLE_ROWS = "CUMEM_TEST_WHOLE_ROWS" in os.environ
SECONDS = 900 if WHOLE_ROWS else 180
_OURS = ("CUMEM_", "RANK", "WORLD_SIZE", "SLURM_", "OMPI_")


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.split()


def environment(**extra):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {**kept, **{name: str(value) for name, value in extra.items()}}


def is_ours(variable):
    """Read by cumem alone, and not before torch."""
    return variable.startswith("CUMEM_") and variable != "CUMEM_WARN_CYCLES"


def begins_with_torch(code):
    return code.startswith(NODES)


def run(code, *, cwd, before=(), **variables):
    """Run `code` under this interpreter; `before` goes in front of "-c"."""
    code = textwrap.dedent(code)
    if begins_with_torch(code) and not before and all(map(is_ours, variables)):
        return Done(*preloaded.run(code, folder=cwd, environment=environment(**variables),
                                   seconds=SECONDS, optimizes="optim." in code))
    done = subprocess.run(
        [sys.executable, *before, "-c", code],
        cwd=cwd, env=environment(**variables), capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def run_ok(code, **options):
    done = run(code, **options)
    assert done.code == 0, done.err
    return done


def died_by(done):
    """The signal that ended it, or None."""
    return signal.Signals(-done.code) if done.code < 0 else None


# What the programs begin with: a device object is a small CPU tensor.
NODES = """
import gc, json, os, sys
import torch, cumem

class Node:
    def __init__(self, tensor=None):
        self.tensor = tensor
        self.link = None

def make_pair(size=1024):
    a, b = Node(torch.zeros(size)), Node()
    a.link, b.link = b, a
"""

# A child that is forked meanwhile leaves by its own exit: it has no such thread.
HELD = """
import contextlib, threading
@contextlib.contextmanager
def held_by_another_thread(lock):
    held, over = threading.Event(), threading.Event()
    def hold():
        with lock:
            held.set()
            over.wait()
    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait()
    yield
    over.set()
    thread.join()
"""

LEAK = NODES.replace(", cumem", "") + """
for _ in range(3):
    make_pair(1 << 20)
gc.collect()
"""


def reports(folder):
    return sorted(path.name for path in folder.glob("*.json"))
