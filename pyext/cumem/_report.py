# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What a callback and find_cycles() hand over: the page, the report, the text."""

import os

from . import _core

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cyclereport")
_DRAWING_SECONDS = 30
_KEPT_PAGES = 64
# A quote inside a JSON text is escaped, so no text of the user's looks like this.
_FINGERPRINT = rb'"fingerprint":"([0-9a-f]{16})"'


class CycleReport(str):
    """A whole HTML document (a ``str``) with the report behind it.

    Attributes
    ----------
    report : dict
        The ``leak.json`` object: bytes are integers, addresses hex strings.
    text : str
        The summary a terminal shows, lines of at most 80 columns.
    """

    __slots__ = ("_json",)

    def __new__(cls, document):
        """Build from the bytes of a ``leak.json`` document."""
        self = super().__new__(cls, _page(document))
        self._json = document
        return self

    @property
    def report(self):
        import json

        return json.loads(self._json)

    @property
    def text(self):
        return _core.text(self._json, True, 0)

    def save(self, path):
        """Write to `path`: the page, or with a name that ends in ``.json`` the report.

        The file appears whole or not at all.  Raises OSError.
        """
        import tempfile

        path = os.fspath(path)
        folder, name = os.path.split(path)
        data = self._json if name.endswith(".json") else str(self).encode()
        handle, temporary = tempfile.mkstemp(dir=folder or ".", prefix=f".{name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def __repr__(self):
        return f"<CycleReport: {len(self.report['cycles'])} findings, {len(self)} characters>"

    def __reduce__(self):
        return CycleReport, (self._json,)


_pages = {}


def _page(document):
    """The page for a document; pages are kept by the set of fingerprints."""
    import re

    key = frozenset(re.findall(_FINGERPRINT, document))  # a parse would cost ten times it
    page = _pages.get(key)
    if page is None:
        page = _draw(document)
        if len(_pages) >= _KEPT_PAGES:
            del _pages[next(iter(_pages))]
        _pages[key] = page
    return page


def _draw(document):
    """The page with drawings by cyclereport, without them when it cannot be run."""
    import subprocess  # here, so that starting under CUMEM_WARN_CYCLES costs little

    if os.path.exists(_PROGRAM):
        try:
            done = subprocess.run(
                [_PROGRAM, "-", "--format", "html", "-o", "-"],
                input=document, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"}, timeout=_DRAWING_SECONDS,
            )  # fmt: skip
            if done.returncode == 0 and done.stdout:
                return done.stdout.decode()
        except (OSError, subprocess.SubprocessError):
            pass
    return _core.page(document)
