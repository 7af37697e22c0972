# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""watch(): everything that CUMEM_WARN_CYCLES=1 does, for a part of a program."""

import contextlib
import functools
import os
import sys

from . import _budget, _core, _environment, _growth, _report, _runtime, _settings, _steps


def _is_any(function, *kinds):
    """What calls of it give; of an object, its class's ``__call__``."""
    return any(kind(one) for kind in kinds for one in (function, getattr(type(function), "__call__", None)))


@functools.cache
def _tell_unobserved(name, why):
    _settings.warn_of([f"{name}() runs unobserved: {why}"])


class Watcher(_runtime.Handle):
    """What :func:`watch` returns: a context manager, and a decorator.

    It observes until :meth:`remove`, or the end of its ``with`` statement; as a
    decorator, during each call of the function, of a coroutine function until it
    has returned.  Where it cannot, the function runs all the same, and a warning says why.
    """

    def __init__(self, devices, path, stacks):
        super().__init__(None, devices, _settings.parse_size("1MiB"), path, stacks)
        self._calls = 0

    def __call__(self, function=None):
        """Observe during each call of `function`; without one the same as :meth:`remove`.

        Raises TypeError for what is no function, and for a generator.
        """
        if function is None:
            return self.remove()
        if not callable(function):
            raise TypeError(f"a function was expected, not {type(function).__name__}")
        import inspect

        if _is_any(function, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
            raise TypeError("a generator runs when its items are asked for: use `with cumem.watch():` in it")
        self._end(False)
        is_over = sys.is_finalizing  # modules' names may be gone then
        name = getattr(function, "__qualname__", type(function).__name__)

        @functools.wraps(function)
        def watched(*args, **keywords):
            if is_over():
                return function(*args, **keywords)
            with self._call(name):
                return function(*args, **keywords)

        @functools.wraps(function)
        async def awaited(*args, **keywords):
            with self._call(name):
                return await function(*args, **keywords)

        return awaited if _is_any(function, inspect.iscoroutinefunction) else watched

    @contextlib.contextmanager
    def _call(self, name):
        self._enter(name)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, name):
        with _runtime._lock:
            self._calls += 1
            try:
                if self._calls == 1:
                    self._begin(name)
            except BaseException:
                self._calls -= 1
                raise

    def _begin(self, name):
        """Where nothing can be observed the program's function runs too."""
        try:
            _runtime._add(self)
        except Exception as error:
            _core.let_through()
            _tell_unobserved(name, str(error))

    def _leave(self):
        with _runtime._lock:
            self._calls -= 1
            if self._calls == 0:
                self._end(_budget.allows("end of a part"))

    def remove(self):
        """Stop observing; what is dead or has grown until now is in the report, and in its file."""
        self._end(True)

    def _end(self, look):
        with _runtime._lock:
            try:
                if look and self in _runtime._handles:
                    with _budget.end_of_part():
                        self._scan()
                        self._update()
            finally:  # also when Ctrl-C comes meanwhile
                super().remove()

    def step(self, name=None):
        """End an iteration, as :func:`cumem.step`."""
        _steps.step(name)

    @property
    def report(self):
        """The ``leak.json`` object, as a dict: what the process has found, as it is now.

        Once nobody observes any more, as it was then.
        """
        import json

        return json.loads(self._document())

    def save(self, path):
        """Write the page to `path`; with a name that ends in ``.json`` the report.

        The file appears whole or not at all.  Raises OSError.
        """
        document = self._document()
        name = os.fsdecode(path)
        _report.write_whole(name, document if name.endswith(".json") else _report._draw(document).encode())

    def _document(self):
        with _runtime._lock:
            if _runtime._handles:
                self._update()
            return _core.document()

    @staticmethod
    def _scan():
        """Collections that come later are heard by nobody; observers hear those."""
        if _runtime._attached["scanning"]:  # an observer ends it, whom a scan has called
            return
        try:
            _runtime._scan(_runtime.SCAN, aloud=False)
        except Exception:
            _core.unraisable(Watcher._scan)

    @staticmethod
    def _update():
        """What grows is judged when it is asked for: the points of the timeline are not older."""
        _runtime.flush()
        _runtime._guarded(_growth.look)
        with _runtime._no_collection():
            _runtime._note_memory(snapshot=True)
        _core.close()


def watch(path=None, *, devices="auto", stacks=True):
    """Observe what CUMEM_WARN_CYCLES=1 observes: dead cycles, growth, and memory that ran out.

    What is found is logged and reported as by :func:`cumem.warn_tensor_cycles`.

    Parameters
    ----------
    path : path, optional
        Where the report is written, as CUMEM_OUTPUT; default: that, else a name
        with the process's number in the current directory.
    devices
        As for :func:`cumem.observe_tensor_cycles`.
    stacks : bool
        Whether allocations are known by their stacks.

    Returns
    -------
    Watcher
        Observes at once.  ``with cumem.watch(): ...``, or ``@cumem.watch()``
        before a function, ends it again.  Put it around the loop, not before one
        step: between two calls nobody observes, and what a call has left behind
        has no line in the next one.

    Raises
    ------
    ValueError
        For a bad device or path, or `stacks` that is not a bool; it names the value.
    RuntimeError
        Where this interpreter cannot be observed; it says why.
    """
    if not isinstance(stacks, bool):
        raise ValueError(f"not True or False: {stacks!r}")
    if path is not None and not isinstance(path, (str, bytes, os.PathLike)):
        raise ValueError(f"not a file name: {path!r}; expected a path")
    return _runtime._add(Watcher(_settings.parse_devices(devices), _path_of(path), stacks))


def _path_of(path):
    if path is None:
        return _environment.report_path()
    text = os.fsdecode(path)
    name = _settings.output_path(text)
    _settings.note_folder(name, f"cumem.watch({text!r})")
    return name
