# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Why an object is alive: the ways from named roots to it."""

import re
import sys

from . import _core, _modules, _runtime

_COUNTED = re.compile(r"(.+) of (\d+)")
_KEY = re.compile(r"\['(\w+)'\]")
_FRAME = re.compile(r"frame (.+:\d+) in (.+)")
_TABLES = ("._modules", "._parameters", "._buffers")  # of a torch.nn.Module
_NOBODY = "not reachable from Python roots: a C extension holds it"
_ASKER = "held by nothing but the expression that asks"
_UNREAD = "not found; variables of running functions cannot be read in this Python"
_CUT = "not found among the {:,} objects that there was time for"
_MOST = 1000


class Path:
    """One way from a named root to an object; ``str()`` is one line.

    Attributes
    ----------
    steps : list of (str, str)
        What each object on the way is, and how the one before holds it
        (``"[3]"``, ``".losses"``, ``"local x"``).  The first is the root, with an
        empty second part; the last is the object itself.
    """

    __slots__ = ("steps",)

    def __init__(self, steps):
        self.steps = steps

    def __str__(self):
        (root, _), *steps = _folded(self.steps)
        *between, (annotation, edge) = steps
        if not between:
            return f"{_start(root, edge)} > {annotation}"
        parts = _parts(root, between)
        return " > ".join([*parts, edge, annotation] if edge else [*parts, annotation])

    def __repr__(self):
        return f"<Path: {self}>"


def way_to(steps):
    """One line of the way to a place at which things pile up; in a frame of a traceback it
    begins there."""
    frames = [(i, found) for i, (what, _) in enumerate(steps) if (found := _FRAME.fullmatch(what))]
    if frames and frames[-1][0] < len(steps) - 1:
        at, found = frames[-1]
        steps = [(f"{found[1]} {found[2]}", ""), *steps[at + 1 :]]
    (root, _), *steps = _folded(steps)
    return " > ".join(_parts(root, steps)) if steps else root


def _parts(root, steps):
    (first, held), *rest = steps
    start = f"{_start(root, held)} ({_what(first)})" if held else f"{root}: {_what(first)}"
    return [start, *(_held(*step) for step in rest)]


def _folded(steps):
    """A module's child is `.body`, as in the program, not ``._modules > ['body']``."""
    folded = []
    for annotation, edge in steps:
        name = _KEY.fullmatch(edge)
        if name is not None and folded and folded[-1][1] in _TABLES and len(folded) > 1:
            folded.pop()
            edge = f".{name[1]}"
        folded.append((annotation, edge))
    return folded


def _start(root, edge):
    """``train.losses`` in backquotes, or "train.py:80 main: local `losses`"."""
    if root.startswith("module ") and edge.startswith((".", "[")):
        return f"`{root.removeprefix('module ')}{edge}`"
    kind, _, name = edge.partition(" ")
    if kind in ("local", "global") and name:
        edge = f"{kind} `{name}`"
    return f"{root}: {edge}" if edge else root


def _held(annotation, edge):
    return f"{edge} ({_what(annotation)})" if edge else annotation


def _what(annotation):
    counted = _COUNTED.fullmatch(annotation)
    if counted is None:
        return annotation
    name, number = counted.groups()
    return f"{name}, {int(number):,} item{'' if number == '1' else 's'}"


def why_alive(obj, *, max_paths=3):
    """Name what keeps an object alive: shortest ways from named roots to it.

    Parameters
    ----------
    obj : object
        Anything.  Variables of the code that calls this are passed over as long
        as something else holds the object too.
    max_paths : int, optional
        At most so many ways, each by another object that refers to `obj`; 1 to 1000.

    Returns
    -------
    list of Path
        What a user wrote first, libraries next, the interpreter's tables last;
        in each the shortest way from each variable first, what only autograd keeps
        last.  Never empty: where nothing in Python holds the
        object, one path says so, or that only the caller's own expression does.

    Raises
    ------
    ValueError
        For a bad `max_paths`; it names the value.
    RuntimeError
        On a free-threaded build, whose heap cannot be looked at.
    MemoryError

    Notes
    -----
    Breadth first over what the collector's own traversal shows, and what autograd keeps
    in C++ for a backward pass, from modules and the frames, exceptions and contexts of
    all threads.  It runs no code of the program,
    collects nothing, frees nothing and keeps nothing; the pause is at most that of
    about one full collection.
    """
    if not isinstance(max_paths, int) or isinstance(max_paths, bool) or not 1 <= max_paths <= _MOST:
        raise ValueError(f"not a number of paths from 1 to {_MOST}: {max_paths!r}")
    _runtime._prepare()
    ways, what, looked_at, cut, unread = _core.why_alive(obj, int(max_paths))
    if not ways:
        only_asked = sys.getrefcount(obj) <= _OF_A_TEMPORARY and not _is_in_cpp(obj)
        reason = (_ASKER if only_asked else _CUT.format(looked_at) if cut
                  else _UNREAD if unread else _NOBODY)  # fmt: skip
        ways = [[(reason, ""), (what, "")]]
    return [Path(steps) for steps in ways]


def _references(obj, *, max_paths=3):
    """As why_alive() counts them."""
    return sys.getrefcount(obj)


_OF_A_TEMPORARY = _references(object())


def _is_in_cpp(obj):
    """Whether more than its Python object has the tensor."""
    torch = sys.modules.get("torch")
    if not hasattr(torch, "Tensor") or not _modules.is_tensor(obj):
        return False
    count = getattr(torch._C.TensorBase, "_use_count", None)
    return count is None or count(obj) > 1
