# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A disk that takes seconds: no step of the program waits for it when something grows."""

import os
import subprocess
import sys

import pytest

from process import SECONDS, environment

pytest.importorskip("torch")

SLOW = 2  # seconds of each fsync()
DISK = f"""
#include <unistd.h>
__attribute__((visibility("default"))) int fsync(int file) {{ (void)file; return sleep({SLOW}) != 0; }}
"""
PROGRAM = """
import sys, threading, time
import torch

model = torch.nn.Linear(200, 200)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
kept, longest = [], 0

def train():
    global longest
    for i in range(120):
        begin = time.monotonic()
        loss = model(torch.randn(16, 200)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(torch.randn(300, 300))
        longest = max(longest, time.monotonic() - begin) if i else 0
        time.sleep(0.03)
    print("longest", longest, flush=True)

if "thread" in sys.argv:  # the main thread comes by nowhere
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
else:
    train()
print("over", file=sys.stderr, flush=True)
"""
RING = """
import time
import torch

model = torch.nn.Linear(200, 200)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
kept = []
for i in range(150):
    loss = model(torch.randn(16, 200)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(torch.randn(300, 300))
    exec("if len(kept) > 30: del kept[:1]")  # a bound that nobody can read
    time.sleep(0.03)
"""


@pytest.fixture(scope="module")
def slow_disk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow_disk")
    (folder / "disk.c").write_text(DISK)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", folder / "disk.so", folder / "disk.c"],
                   check=True)  # fmt: skip
    return folder / "disk.so"


def run_on(disk, folder, program, *arguments):
    script = folder / "program.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, script, *arguments], cwd=folder, capture_output=True, text=True, timeout=SECONDS,
        env=environment(LD_PRELOAD=disk, CUMEM_WARN_CYCLES=1, CUMEM_OUTPUT=folder / "leak.json"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "leak.json").exists()
    return done


@pytest.mark.parametrize("where", ["main", "thread"])
def test_no_step_waits(tmp_path, slow_disk, where):
    done = run_on(slow_disk, tmp_path, PROGRAM, where)
    assert float(done.stdout.split()[1]) < SLOW, done.stdout + done.stderr
    before, _, _ = done.stderr.partition("over\n")
    assert "LEAK" in before, done.stderr  # while it runs, and not at exit alone


def test_only_who_read_of_a_leak_reads_that_it_stopped(tmp_path, slow_disk):
    """It stops while the disk takes its time: both are told in order, or neither is."""
    done = run_on(slow_disk, tmp_path, RING)
    before, stopped, _ = done.stderr.partition("(told as a leak before)")
    assert "LEAK" in before or not stopped, done.stderr
