# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A part of a bench in a process of its own: what it expected, what it got.

A part that dies takes nothing with it but itself, and all that it said is
kept: a run on a GPU is rare, and must be enough to mend what failed.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import traceback

import measure

_TAIL = 40  # lines of what a failed part said


class Checks:
    """What was expected, what came, and whether that is right; in a child."""

    def __init__(self):
        self.rows = []

    def expect(self, what, expected, got, holds):
        """`holds`: True, False, or None where it could not be measured."""
        self.rows.append({"what": what, "expected": str(expected), "got": str(got),
                          "holds": holds if holds is None else bool(holds)})

    @contextlib.contextmanager
    def part(self, what):
        """An exception is a failure of this part alone."""
        try:
            yield
        except Exception as error:
            self.expect(what, "no exception", f"{type(error).__name__}: {error}"[:300],
                        False)
            self.rows[-1]["traceback"] = traceback.format_exc()


def call(script, part, spec, seconds, **environment):
    """The answer of `part` of bench/SCRIPT, a dict; {"failed", "said"} if none came."""
    with tempfile.TemporaryDirectory(prefix="cumem-bench-") as folder:
        path = os.path.join(folder, "answer.json")
        command = [sys.executable, str(measure.HERE / script), part, json.dumps(spec), path]
        with open(os.path.join(folder, "said"), "w+b") as said:
            try:
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                    timeout=max(1, seconds), check=False, cwd=folder,
                    env=measure.environment(**environment))
                why = f"exit status {done.returncode}"
            except subprocess.TimeoutExpired:
                why = f"not done in {seconds:.0f} s"
            said.seek(0)
            text = said.read().decode(errors="replace")
        try:
            with open(path) as file:
                return json.load(file)
        except (OSError, ValueError):
            lines = text.splitlines()[-_TAIL:]
            return {"failed": why, "said": "\n".join(lines)}


def answer(parts):
    """The child's side, the script's last line: {name: function of a spec}."""
    part, spec, path = sys.argv[1:4]
    result = parts[part](json.loads(spec))
    with open(path + ".new", "w") as file:
        json.dump(result, file)
    os.replace(path + ".new", path)
