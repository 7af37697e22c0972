# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""R3 on the whole package: where cumem runs out of memory, the program does
not notice.  (The interceptors alone: test_interceptors.)

CUMEM_FAILURES_STRIDE=1 takes every allocation, for minutes; the default takes
every tenth.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from process import SECONDS, environment

PROBE = pathlib.Path(__file__).parent / "memory_probe"
STRIDE = os.environ.get("CUMEM_FAILURES_STRIDE", "10")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    target = tmp_path_factory.mktemp("memory_probe") / "failing_malloc.so"
    built = subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-fPIC", "-shared",
         "-Wall", "-Wextra", "-Werror", "-o", target,
         PROBE / "failing_malloc.c"], capture_output=True, text=True)
    if "__libc_" in built.stderr:
        pytest.skip("needs glibc")
    assert built.returncode == 0, built.stderr
    return target


@pytest.mark.parametrize("from_then_on", [0, 1])
@pytest.mark.parametrize("way", ["warn", "observe"])
def test_r3_each_allocation_fails(tmp_path, library, way, from_then_on):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", PROBE / "failing_memory.py",
         library, way, str(from_then_on), STRIDE],
        env=environment(LD_PRELOAD=library), cwd=tmp_path,
        capture_output=True, text=True,
        timeout=SECONDS * (1 if STRIDE != "1" else 20))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 100, done.stdout


@pytest.mark.parametrize("from_then_on", [0, 1])
def test_each_allocation_of_a_walk_fails(tmp_path, library, from_then_on):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", PROBE / "failing_walk.py",
         library, str(from_then_on), STRIDE],
        env=environment(LD_PRELOAD=library), cwd=tmp_path,
        capture_output=True, text=True,
        timeout=SECONDS * (1 if STRIDE != "1" else 20))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 50, done.stdout
