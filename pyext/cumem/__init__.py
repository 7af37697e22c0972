# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem finds the GPU memory that a Python job holds and should not.

It says which line allocated it and which reference to cut::

    CUMEM_WARN_CYCLES=1 python train.py

or, inside a program:

* :func:`warn_tensor_cycles` does the same from there on, :func:`watch` for a part of it;
  :func:`observe_tensor_cycles` calls back for each collection that found dead cycles;
* :func:`find_cycles` says what a collection would free now, :func:`growth` what grows,
  :func:`why_alive` what holds one object, :func:`memory` where a device's memory is;
* :func:`step` ends an iteration, :func:`flush` waits for analysis that is under way,
  :func:`status` says what is observed, and why something is not.

``cyclereport leak-<pid>.json``, in a shell, shows a report that was written.
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
