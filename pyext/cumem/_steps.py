# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Iterations: told by the program's own step(), else by its optimizer."""

import sys

from . import _core

_KEY = "cumem"


def step(name=None):
    """End an iteration: what was allocated since the last one is told apart.

    A program that never calls this has an iteration each time that all of its
    optimizers have stepped; from the first call on, only this one counts.
    Where nothing steps, slices of time stand for iterations, a tenth of a second
    at first and longer as the run gets longer; the report says so.  They are
    counted on from the last iteration where nothing steps any more, as in a
    program that trains and then serves.

    Parameters
    ----------
    name : str, optional
        For the reader of the program; it is not recorded.

    Raises
    ------
    TypeError
        When `name` is neither None nor a str.
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    _core.step()


step._torchdynamo_disable = True


def attach():
    """Hear torch's optimizers; twice is fine."""
    hooks = _hooks()
    if hooks is None or _is_iterated(hooks):
        return
    hooks[_KEY] = _stepped
    _core.attached()


def _stepped(optimizer, args, kwargs):
    """In Python, since Dynamo warns of a function in C where an optimizer's step is compiled."""
    _core.stepped(optimizer, args, kwargs)


_stepped._torchdynamo_disable = True


def detach():
    """Take the hook out of torch again."""
    hooks = _hooks()
    if hooks is not None and _KEY in hooks and not _is_iterated(hooks):
        del hooks[_KEY]


def _hooks():
    """torch's hooks after each optimizer's step, by number.

    Not its register function: that takes a number away from the program's own hooks, and
    they are counted in what a program may print.
    """
    module = sys.modules.get("torch.optim.optimizer")
    return getattr(module, "_global_optimizer_post_hooks", None)


def _is_iterated(hooks):
    """Whether a step goes through `hooks` now: a change would raise in it.

    We may be called in a collection within somebody's hook.
    """
    return bool(hooks) and any(map(_is_stepping, sys._current_frames().values()))


def _is_stepping(frame):
    while frame is not None:
        code = frame.f_code
        if code.co_name == "wrapper" and code.co_filename.endswith("optimizer.py"):
            return True
        frame = frame.f_back
    return False
