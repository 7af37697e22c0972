# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Checks on a machine with GPUs, each a process of its own, in an empty folder."""

import os
import subprocess
import sys
import tempfile

import measure


def run(begin, checks):
    """Run ``begin`` and the code of each of ``checks``, name to (environment, code).

    Prints what each said; returns the exit status, 1 when one failed.
    """
    print(*measure.head(measure.machine()), "", sep="\n", flush=True)
    failed = 0
    for name, (variables, code) in checks.items():
        environment = dict(os.environ, **{key: str(value) for key, value in variables.items()})
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", begin + code], env=environment, cwd=folder,
                                  capture_output=True, text=True, timeout=300)  # fmt: skip
        failed += done.returncode != 0
        print(f"== {name}: {'ok' if done.returncode == 0 else f'FAILED ({done.returncode})'}")
        print(done.stdout + done.stderr, flush=True)
    return 1 if failed else 0
