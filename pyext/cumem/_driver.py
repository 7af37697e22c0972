# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""CUMEM_DRIVER=1: what CUDA's driver gives out, through CUPTI.

The core subscribes once CUDA is initialised.  Where the environment starts us, the
driver loads our library inside its initialisation instead, before anything is allocated.
"""

import glob
import os
import sys

from . import _core, _settings

_INJECTION = "CUDA_INJECTION64_PATH"
_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(_core.__file__)), "libcumem_driver.so")
# Below a folder of packages: in CUDA 12's wheel, in CUDA 13's.
_CUPTI = ("nvidia/cuda_cupti/lib/libcupti.so.1[23]", "nvidia/cu1[23]/lib/libcupti.so.1[23]")

_state = {"wanted": None, "asked": False}


def is_wanted():
    """Whether CUMEM_DRIVER asks for it; read once."""
    if _state["wanted"] is None:
        problems = []
        _state["wanted"] = _settings.from_environment(
            "CUMEM_DRIVER", _settings.parse_switch, False, problems
        )
        _settings.warn_of(problems)
    return _state["wanted"]


def inject():
    """Have the driver load our library, unless it is to load another one."""
    if is_wanted() and not os.environ.get(_INJECTION) and os.path.exists(_LIBRARY):
        os.environ[_INJECTION] = _LIBRARY


def ask():
    """Tell the core; before it is installed."""
    if is_wanted() and not _state["asked"]:
        _state["asked"] = True
        _core.driver(True, _find_cupti(), _holder())


def _holder():
    path = os.environ.get(_INJECTION)
    if not path:
        return f"none: {_INJECTION} is not set, events come from the subscription on"
    if os.path.realpath(path) == os.path.realpath(_LIBRARY):
        return "ours"
    return f"not ours: {_INJECTION} is {path}, events come from the subscription on"


def _find_cupti():
    """The newest of the installed packages, or ""; used where none is loaded."""
    for folder in filter(None, map(str, sys.path)):
        for pattern in reversed(_CUPTI):
            found = sorted(glob.glob(os.path.join(glob.escape(folder), pattern)))
            if found:
                return found[-1]
    return ""
