# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem finds the GPU memory that a Python job holds and should not.

It says which line allocated it and which reference to cut::

    CUMEM_WARN_CYCLES=1 python train.py

or, inside a program, :func:`warn_tensor_cycles`, :func:`observe_tensor_cycles`
and :func:`find_cycles`.
"""

from ._growth import growth
from ._memory import memory
from ._paths import Path, why_alive
from ._report import CycleReport
from ._runtime import (
    Handle,
    find_cycles,
    flush,
    observe_tensor_cycles,
    status,
    warn_tensor_cycles,
)
from ._steps import step
from ._version import __version__
from ._watch import Watcher, watch

__all__ = [
    "CycleReport",
    "Handle",
    "Path",
    "Watcher",
    "__version__",
    "find_cycles",
    "flush",
    "growth",
    "memory",
    "observe_tensor_cycles",
    "status",
    "step",
    "warn_tensor_cycles",
    "watch",
    "why_alive",
]
