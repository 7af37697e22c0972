# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Whether the program ended because memory ran out: where no observer tells, its last exception does.

torch tells of its CUDA allocator's failures as they happen; the CPU's allocator,
CuPy, JAX and Numba raise alone.  An exception is read by the getters of
``BaseException``: no code of the program runs.
"""

import re
import sys

from . import _core

_MOST_CAUSES = 10
_MOST_BYTES = (1 << 64) - 1
_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "OUT_OF_MEMORY",
          "RESOURCE_EXHAUSTED")  # fmt: skip
_SIZE = re.compile(r"allocat\w*:? ([\d.,]*\d) ?(bytes|[KMGTPE]iB)")
_UNITS = {"bytes": 0, **{f"{letter}iB": 10 * (i + 1) for i, letter in enumerate("KMGTPE")}}
_FIELDS = vars(BaseException)


def cause():
    """(class, bytes asked for or None) of the exception that nobody caught, or of what it
    came from; None: it is not of that kind."""
    known = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    for _ in range(_MOST_CAUSES):
        if not isinstance(known, BaseException):
            return None
        if _is_of_memory(known):
            return type.__dict__["__name__"].__get__(type(known)), _asked(known)
        cause = _read(known, "__cause__")
        known = cause if cause is not None else _read(known, "__context__")
    return None


def _read(error, name):
    return _FIELDS[name].__get__(error)


def _is_of_memory(error):
    """By its class, or for those that frameworks raise for everything by the words."""
    name, mro = (type.__dict__[field].__get__ for field in ("__name__", "__mro__"))
    if any(cls is MemoryError or name(cls) == "OutOfMemoryError" for cls in mro(type(error))):
        return True
    return any(word in _text(error) for word in _WORDS)


def _text(error):
    arguments = _read(error, "args")
    text = arguments[0] if arguments else None
    return text if type(text) is str else ""


def _asked(error):
    """"tried to allocate 4096 bytes" of torch, "Unable to allocate 8.00 EiB" of NumPy."""
    found = _SIZE.search(_text(error))
    if found is None:
        return None
    try:
        asked = int(float(found[1].replace(",", "")) * 2 ** _UNITS[found[2]])
    except (ValueError, OverflowError):  # "10.11.12.13 bytes"
        _core.let_through()
        return None
    return asked if asked <= _MOST_BYTES else None
