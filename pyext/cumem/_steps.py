# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Iterations: told by the program's own step(), else by its optimizer."""

import sys

from . import _core

_state = {"done": 0, "told": False, "optimizer": None, "hook": None}


def step(name=None):
    """End an iteration: what was allocated since the last one is told apart.

    A program that never calls this has an iteration at each ``step()`` of the
    optimizer that steps first; from the first call on, only this one counts.

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
    _state["told"] = True
    _end()


def _end():
    _core.step(_state["done"])
    _state["done"] += 1


def _on_optimizer(optimizer, args, kwargs):
    """torch's global hook after every optimizer's step."""
    if _state["told"]:
        return
    if _state["optimizer"] is None:
        _state["optimizer"] = id(optimizer)
    if _state["optimizer"] == id(optimizer):
        _end()


def attach():
    """Hear torch's optimizers; twice is fine."""
    module = sys.modules.get("torch.optim.optimizer")
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if _state["hook"] is None and register is not None:
        _state["hook"] = register(_on_optimizer)


def detach():
    """Take the hook out of torch again."""
    hook, _state["hook"] = _state["hook"], None
    _state["optimizer"] = None
    if hook is not None:
        hook.remove()
