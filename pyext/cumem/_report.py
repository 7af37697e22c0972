# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What a callback and find_cycles() hand over: the page, the report, the text."""

import json
import os
import sys

from . import _core

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cyclereport")
_DRAWING_SECONDS = 30
_KEPT = 64


class CycleReport(str):
    """A whole HTML document (a ``str``) with the report behind it.

    Attributes
    ----------
    report : dict
        The ``leak.json`` object: bytes are integers, addresses hex strings.
    text : str
        The summary a terminal shows.
    """

    __slots__ = ("_event", "_json")

    def __new__(cls, event, key=None):
        """Build from what the core found; its document is written when it is asked for."""
        self = super().__new__(cls, _page(event, _core.event_key(event) if key is None else key))
        self._event, self._json = event, None
        return self

    @property
    def _document(self):
        if self._json is None:
            self._json = _core.event_document(self._event)
            self._event = None
        return self._json

    @property
    def report(self):
        return json.loads(self._document)

    @property
    def text(self):
        return _core.text(self._document, True, 0)

    def save(self, path):
        """Write to `path`: the page, or with a name that ends in ``.json`` the report.

        The file appears whole or not at all.  Raises OSError.
        """
        path = os.fsdecode(path)
        write_whole(path, self._document if path.endswith(".json") else str(self).encode())

    def __repr__(self):
        count = len(self.report["cycles"])
        return f"<CycleReport: {count} finding{'' if count == 1 else 's'}, {len(self)} characters>"

    def __reduce__(self):
        return _restore, (str(self), self._document)


def write_whole(path, data):
    """The file appears whole or not at all; a device or a pipe is written to, never replaced."""
    import tempfile

    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:  # a folder says that it is one
            file.write(data)
        return
    folder, name = os.path.split(os.path.realpath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".cumem-")
    except OSError as error:
        error.filename = path
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        os.unlink(temporary)
        raise


def _restore(page, document):
    self = str.__new__(CycleReport, page)
    self._event, self._json = None, document
    return self


_kept = {}  # by the set of fingerprints: the last report, whose page is that of the next one


def _page(event, key):
    """The page for an event: equal findings have one page."""
    return _kept[key] if key in _kept else _draw(_core.event_document(event))


def take(event, key):
    """The report for an event with this key; one that nobody has kept is given out again.

    Its page is the same, and to copy it would empty the processor's first cache.
    """
    report = _core.unshared(_kept, key)
    if report is None:
        return _make(event, key)
    report._event, report._json = event, None
    return report


def _make(event, key):
    report = CycleReport(event, key)
    if key not in _kept and len(_kept) >= _KEPT:
        del _kept[next(iter(_kept))]
    _kept[key] = report
    return report


def give_back(key):
    """Let go of what the report has of its event, unless somebody has kept it."""
    report = _core.unshared(_kept, key)
    if report is not None:
        report._event = report._json = None


def _draw(document):
    """The page with drawings by cyclereport, without them when it cannot be run."""
    subprocess = sys.modules.get("subprocess")  # who observes has imported it
    if subprocess is None:
        import subprocess
    whole = hasattr(subprocess, "Popen")  # else a collection while it is being imported found a cycle
    if whole and os.path.exists(PROGRAM):
        try:
            done = subprocess.run(
                [PROGRAM, "-", "--format", "html", "-o", "-"],
                input=document, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"}, timeout=_DRAWING_SECONDS,
            )  # fmt: skip
            if done.returncode == 0 and done.stdout:
                return done.stdout.decode()
        except (OSError, RuntimeError, subprocess.SubprocessError):  # some interpreters may start none
            _core.let_through()
    return _core.page(document)
