# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""``torch.utils.viz._cycles`` under cumem: change the import line, nothing else."""

from .. import _core
from .._runtime import observe_tensor_cycles, warn_tensor_cycles

__all__ = ["observe_garbage", "observe_tensor_cycles", "warn_tensor_cycles"]


def observe_garbage(observer):
    """Call `observer` with the live objects of each collection's garbage.

    torch's meaning: the observer gets a list of the objects themselves, which
    are cleared when it returns (what it keeps, lives on).  So this one call uses
    the fallback interceptor, ``gc.DEBUG_SAVEALL`` during the collection.

    Parameters
    ----------
    observer : callable
        Gets one list; its exceptions go to ``sys.unraisablehook``.

    Returns
    -------
    callable
        Takes the observer back; twice is fine.
    """
    if not callable(observer):
        raise TypeError(f"observer must be callable, not {type(observer).__name__}")
    return _core.observe_garbage(observer)
