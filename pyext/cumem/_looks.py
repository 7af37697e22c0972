# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""When to look for dead memory without being asked, and what to do about it: from the environment."""

import functools
import os
import re
import signal

from . import _core, _log, _memory, _settings

_LEAST_BYTES = 256 << 20
_SHARE_OF_DEVICE = 20  # a twentieth
_RUN_FOR_LOOK = 300  # seconds of the run for each second of a look

# What asks a process for something by custom; the others mean something already.
_SIGNALS = {name: getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2", "SIGHUP")}


def parse_count(value):
    """A number of iterations; raises ValueError that names the value."""
    if not re.fullmatch(r"[0-9]{1,9}", value.strip()) or int(value) == 0:
        raise ValueError(f"not a number of iterations: {value!r}; expected one such as 100")
    return int(value)


def parse_signal(value):
    """A signal's number from ``"USR2"``, ``"SIGUSR2"`` or ``"12"``; raises ValueError that names it."""
    word = value.strip().upper()
    known = {number: name for name, number in _SIGNALS.items()}
    if word.isdecimal():
        number = int(word)
        if number in known or signal.SIGRTMIN <= number <= signal.SIGRTMAX:
            return number
    else:
        name = word if word.startswith("SIG") else f"SIG{word}"
        if name in _SIGNALS:
            return int(_SIGNALS[name])
    raise ValueError(f"not a signal to ask by: {value!r}; expected USR1, USR2, HUP, or a real-time one's number")


@functools.cache
def _settled():
    """(every, collect above, signal) of the environment; what is unreadable is said once."""
    problems = []
    found = (
        _settings.from_environment("CUMEM_LOOK_EVERY", parse_count, 0, problems),
        _settings.from_environment("CUMEM_AUTO_COLLECT", _settings.parse_size, 0, problems),
        _settings.from_environment("CUMEM_SIGNAL", parse_signal, 0, problems),
    )
    _settings.warn_of(problems)
    return found


def attach():
    """Look unasked from now on, and when a signal asks; twice is fine."""
    every, collect_above, number = _settled()
    _core.looks(_threshold(), every, collect_above, _RUN_FOR_LOOK)
    if number:
        why = _core.demand(number)
        if why:
            _refused(number, why)


@functools.cache
def _refused(number, why):
    name = next((name for name, known in _SIGNALS.items() if known == number), number)
    _settings.warn_of([f"CUMEM_SIGNAL={name} is not used: {why}"])


def detach(ending=False):
    _core.looks(0, 0, 0, 0)
    _core.demand(-1 if ending else 0)


def _threshold():
    """After how many allocated bytes: the larger of 256 MiB and a twentieth of the device."""
    return max(_LEAST_BYTES, _device_bytes() // _SHARE_OF_DEVICE)


def _device_bytes():
    totals = [_core.process_use(index)[0] or _memory._total(index) or 0 for index in _memory.devices()]
    if totals:
        return min(totals)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def answer(scan):
    """A signal asked: scan, write the report even where nothing was found, say where it is."""
    scan()
    path = _core.status()["report"]
    _log.warn(f"cumem: asked by a signal: {path or 'the report could not be written'}")
