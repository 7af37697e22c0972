# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The start through CUMEM_WARN_CYCLES=1: no code of the user's changes."""

import logging
import os


class _OwnHandler(logging.Handler):
    """Warnings go to standard error, one write each, whatever the program does to logging."""

    def __init__(self, core, settings):
        super().__init__()
        self._core, self._settings = core, settings

    def emit(self, record):
        rank = self._settings.rank()
        text = record.getMessage()
        if rank >= 0 and not text.startswith("cumem ["):
            text = f"[rank {rank}] {text}"
        try:
            os.write(2, f"{text.rstrip()}\n".encode(errors="replace"))
        except OSError:
            self._core.let_through()


def main():
    """Install warn_tensor_cycles() as the environment says; never raises."""
    try:
        _start()
    except Exception as error:
        _say(f"cumem: not started: {error}")


def _say(text):
    try:
        os.write(2, f"{text}\n".encode(errors="replace"))
    except OSError:
        pass


def _start():
    from . import _core, _driver, _runtime, _settings

    problems = []
    devices = _settings.from_environment("CUMEM_DEVICES", _settings.parse_devices, "auto", problems)
    least = _settings.least_bytes(problems)
    for problem in problems:
        _say(f"cumem: {problem}")
    logger = logging.getLogger("cumem")
    logger.addHandler(_OwnHandler(_core, _settings))
    logger.propagate = False
    _driver.inject()
    _runtime.warn_tensor_cycles(devices=devices, min_bytes=least)
