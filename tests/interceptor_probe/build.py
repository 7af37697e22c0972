# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Builds interceptor_probe for one interpreter: build.py PYTHON FOLDER.

The same warnings as the product; a Python that lacks its headers is told so.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYEXT = {
    "tables": "fields page_table huge_pages",
    "collector": "gc_hook gc_list lure many sentinel saveall scan trial",
}
SOURCES = [
    "tests/interceptor_probe/probe.c",
    *(f"pyext/{room}/{name}.c" for room, names in PYEXT.items() for name in names.split()),
    "detector/alloc.c",
    "detector/status.c",
    "detector/ticks.c",
]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wstrict-prototypes",
            "-Wmissing-prototypes", "-Wconversion"]
ASK = ("import sys, sysconfig as s; print(s.get_path('include'));"
       "print(s.get_config_var('EXT_SUFFIX'));"
       "print('-DPy_DEBUG' * hasattr(sys, 'gettotalrefcount'))")


def build(python, folder, flags=()):
    """The path of the built module.  Raises FileNotFoundError where Python.h
    is missing, RuntimeError with what the compiler says."""
    answer = subprocess.run([python, "-I", "-c", ASK], check=True,
                            capture_output=True, text=True).stdout
    include, suffix, debug = answer.split("\n")[:3]
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise FileNotFoundError(f"{python} has no Python.h in {include}")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"interceptor_probe{suffix}"
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-g", "-fPIC",
               "-shared", "-pthread", *WARNINGS, "-isystem", include,
               *filter(None, [debug]), *flags,
               *(str(ROOT / source) for source in SOURCES), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return target


if __name__ == "__main__":
    print(build(sys.argv[1], sys.argv[2], sys.argv[3:]))
