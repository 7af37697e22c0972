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


@pytest.fixture(scope="module")
def slow_disk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow_disk")
    (folder / "disk.c").write_text(DISK)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", folder / "disk.so", folder / "disk.c"],
                   check=True)  # fmt: skip
    return folder / "disk.so"


@pytest.mark.parametrize("where", ["main", "thread"])
def test_no_step_waits(tmp_path, slow_disk, where):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, script, where], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS,
        env=environment(LD_PRELOAD=slow_disk, CUMEM_WARN_CYCLES=1, CUMEM_OUTPUT=tmp_path / "leak.json"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[1]) < SLOW, done.stdout + done.stderr
    before, _, _ = done.stderr.partition("over\n")
    assert "LEAK" in before, done.stderr  # while it runs, and not at exit alone
    assert (tmp_path / "leak.json").exists()
