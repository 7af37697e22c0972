# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Builds frameworks_probe for this interpreter: build(FOLDER) -> its path."""

import os
import pathlib
import subprocess
import sysconfig

SOURCE = pathlib.Path(__file__).with_name("frameworks_probe.c")


def build(folder):
    """Raises RuntimeError with the reason when it cannot be built."""
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise RuntimeError(f"no Python.h in {include}")
    target = pathlib.Path(folder) / ("frameworks_probe"
                                     + sysconfig.get_config_var("EXT_SUFFIX"))
    done = subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-g", "-fPIC",
         "-shared", "-Wall", "-Wextra", "-Werror", "-isystem", include,
         str(SOURCE), "-o", str(target)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return target
