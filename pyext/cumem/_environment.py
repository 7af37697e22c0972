# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the environment asks of the session, as it is now."""

import functools
import os

from . import _settings

_READ = {
    "CUMEM_INTERCEPTOR": {"parse": _settings.parse_choice("sentinel", "saveall"), "default": ""},
    "CUMEM_OUTPUT": {"parse": _settings.parse_pattern, "default": None},
    "CUMEM_STACKS": {"parse": _settings.parse_switch, "default": True, "off": False},
    "CUMEM_VALUES": {"parse": _settings.parse_switch, "default": False},
    "CUMEM_SUPPRESSIONS": {"parse": _settings.parse_file, "default": None},
}


def asked(variable):
    """The value of one of these, as the environment has it now."""
    return _read_environment(variable, os.environ.get(variable))


@functools.cache
def _read_environment(variable, text):
    """What is unreadable is said, once as long as it stays."""
    problems = []
    value = _settings.from_environment(variable, problems=problems, **_READ[variable])
    _settings.warn_of(problems)
    return value


def report_path():
    """As CUMEM_OUTPUT says, else the automatic name in the current directory."""
    path = _settings.output_path(asked("CUMEM_OUTPUT"))
    _settings.note_folder(path, f"CUMEM_OUTPUT={os.environ.get('CUMEM_OUTPUT')!r}")
    return path


def suppression_files():
    files = [asked("CUMEM_SUPPRESSIONS"), _settings.absolute("cumem.supp")]
    return [path for path in files if path and os.path.isfile(path)]
