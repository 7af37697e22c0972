# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Whether the program ended because memory ran out: where no observer tells, its last exception does.

torch tells of its CUDA allocator's failures as they happen; the CPU's allocator,
CuPy, JAX and Numba raise alone.  An exception is read by the getters of
``BaseException``: no code of the program runs.
"""

import sys

_MOST_CAUSES = 10
_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "OUT_OF_MEMORY",
          "RESOURCE_EXHAUSTED")  # fmt: skip
_FIELDS = vars(BaseException)


def is_exhausted():
    """Whether the exception that nobody caught, or what it came from, is of that kind."""
    known = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    for _ in range(_MOST_CAUSES):
        if not isinstance(known, BaseException):
            return False
        if _is_of_memory(known):
            return True
        known = _read(known, "__cause__") or _read(known, "__context__")
    return False


def _read(error, name):
    return _FIELDS[name].__get__(error)


def _is_of_memory(error):
    """By its class, or for those that frameworks raise for everything by the words."""
    name, mro = (type.__dict__[field].__get__ for field in ("__name__", "__mro__"))
    if any(cls is MemoryError or name(cls) == "OutOfMemoryError" for cls in mro(type(error))):
        return True
    arguments = _read(error, "args")
    text = arguments[0] if arguments else None
    return type(text) is str and any(word in text for word in _WORDS)
