# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The interpreters that the interceptors are tested on, and their probes.

CUMEM_TEST_PYTHONS (paths, separated by colons) says which; without it: this
one, and the newest of each other minor version in ~/.pyenv and PATH.
CUMEM_PROBE_DIR keeps built probes between runs.
"""

import functools
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

import build

OLDEST, NEWEST = (3, 11), (3, 15)
ASK = ("import sys, sysconfig; print(*sys.version_info[:3], "
       "int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))")


@functools.cache
def version(python):
    """(3, 12, 1), or None for what cannot be tested here."""
    done = subprocess.run([python, "-I", "-c", ASK], capture_output=True,
                          text=True)
    numbers = [int(word) for word in done.stdout.split()]
    if len(numbers) != 4 or numbers[3]:
        return None
    found = tuple(numbers[:3])
    return found if OLDEST <= found[:2] <= NEWEST else None


def pythons():
    named = os.environ.get("CUMEM_TEST_PYTHONS")
    if named:
        return [path for path in named.split(":") if path]
    best = {}
    kept = glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))
    in_path = [shutil.which(f"python3.{minor}")
               for minor in range(OLDEST[1], NEWEST[1] + 1)]
    for path in filter(None, kept + in_path):
        found = version(path)
        if found and found > best.get(found[:2], ((), ""))[0]:
            best[found[:2]] = (found, path)
    best[sys.version_info[:2]] = (sys.version_info[:3], sys.executable)
    return [path for _, path in sorted(best.values())]


def label(python):
    found = version(python)
    return "python" + ".".join(map(str, found)) if found else python


@functools.cache
def probe_folder(python, scratch, *flags):
    """Where `import interceptor_probe` works for this interpreter.  Raises
    FileNotFoundError where it has no headers."""
    folder = pathlib.Path(os.environ.get("CUMEM_PROBE_DIR", scratch),
                          label(python) + "".join(flags))
    built = list(folder.glob("interceptor_probe*.so"))
    newest = max(os.path.getmtime(build.ROOT / source)
                 for source in build.SOURCES)
    if not built or os.path.getmtime(built[0]) < newest:
        build.build(python, folder, flags)
    return str(folder)


def plain_environment(**more):
    """Ours, without what would make two runs differ."""
    kept = {name: value for name, value in os.environ.items()
            if not re.match("PYTHON|CUMEM|PROBE", name)}
    return kept | {"PYTHONHASHSEED": "0"} | more
