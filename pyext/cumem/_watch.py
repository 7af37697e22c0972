# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""watch(): everything that CUMEM_WARN_CYCLES=1 does, for a part of a program."""

import functools
import os

from . import _core, _report, _runtime, _settings, _steps


class Watcher(_runtime.Handle):
    """What :func:`watch` returns: a context manager, and a decorator.

    It observes until :meth:`remove`, or the end of its ``with`` statement; as a
    decorator, during each call of the function.
    """

    def __init__(self, devices, path, stacks):
        super().__init__(None, devices, _settings.parse_size("1MiB"), path, stacks)
        self._calls = 0

    def __call__(self, function=None):
        if function is None:
            return self.remove()
        if not callable(function):
            raise TypeError(f"a function was expected, not {type(function).__name__}")
        self.remove()

        @functools.wraps(function)
        def watched(*args, **keywords):
            self._enter()
            try:
                return function(*args, **keywords)
            finally:
                self._leave()

        return watched

    def _enter(self):
        with _runtime._lock:
            self._calls += 1
            if self._calls == 1:
                _runtime._add(self)

    def _leave(self):
        with _runtime._lock:
            self._calls -= 1
            if self._calls == 0:
                self.remove()

    def step(self, name=None):
        """End an iteration, as :func:`cumem.step`."""
        _steps.step(name)

    @property
    def report(self):
        """The ``leak.json`` object, as a dict, of what the process has found so far."""
        import json

        return json.loads(self._document())

    def save(self, path):
        """Write the page to `path`; with a name that ends in ``.json`` the report."""
        document = self._document()
        name = os.fspath(path)
        _report.write_whole(name, document if name.endswith(".json") else _report._draw(document).encode())

    def _document(self):
        _runtime.flush()
        path = _core.close()
        if path:
            with open(path, "rb") as file:
                return file.read()
        return _runtime.find_cycles(devices=self._devices)._document


def watch(path=None, *, devices="auto", stacks=True):
    """Observe what CUMEM_WARN_CYCLES=1 observes: dead cycles, and memory that ran out.

    Parameters
    ----------
    path : path, optional
        Where the report is written; default: CUMEM_OUTPUT, else a name with the
        process's number in the current directory.
    devices
        As for :func:`cumem.observe_tensor_cycles`.
    stacks : bool
        Whether allocations are known by their stacks.

    Returns
    -------
    Watcher
        Observes at once.  ``with cumem.watch(): ...``, or ``@cumem.watch()``
        before a function, ends it again.

    Raises
    ------
    ValueError
        For a bad device; it names the value.
    RuntimeError
        Where this interpreter cannot be observed; it says why.
    """
    pattern = os.fspath(path) if path is not None else None
    watcher = Watcher(_settings.parse_devices(devices), _settings.output_path(pattern), bool(stacks))
    return _runtime._add(watcher)
