# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Builds objects_probe for one interpreter: build.py PYTHON FOLDER [FLAG...].

The same warnings as the product; a Python that lacks its headers is told so.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYEXT = {
    "tables": "phrase addresses fields",
    "code": "bytecode pass results opcodes line_table settle sieve spans touch",
    "objects": "objects proofs describe edges builtins attributes frames codes deaths types stack stack_path walked",
}
SOURCES = [
    "tests/objects_probe/objects_probe.c",
    "tests/objects_probe/stores.c",
    *(f"pyext/{room}/{name}.c" for room, names in PYEXT.items() for name in names.split()),
    *sorted(str(path.relative_to(ROOT))
            for path in (ROOT / "detector").glob("*.c")),
]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wstrict-prototypes",
            "-Wmissing-prototypes", "-Wconversion"]
ASK = ("import sysconfig as s; print(s.get_path('include'));"
       "print(s.get_config_var('EXT_SUFFIX'))")


def build(python, folder, flags=()):
    """The path of the built module; raises RuntimeError with the reason."""
    answer = subprocess.run([python, "-I", "-c", ASK], check=True,
                            capture_output=True, text=True).stdout
    include, suffix = answer.splitlines()
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise RuntimeError(f"{python} has no Python.h in {include}")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"objects_probe{suffix}"
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-g", "-fPIC",
               "-shared", "-pthread", *WARNINGS, "-isystem", include, *flags,
               *(str(ROOT / source) for source in SOURCES), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return target


if __name__ == "__main__":
    print(build(sys.argv[1], sys.argv[2], sys.argv[3:]))
