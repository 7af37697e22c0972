# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""torch's modules and tensors, read without running any code of the program's.

Only attributes in instance dictionaries and torch's own C getters.
"""

import sys

from . import _core

_MOST = 20_000


def own(thing, name):
    """An attribute of the instance, past any property or __getattr__."""
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        _core.let_through()
        return None
    return dict.get(found, name) if is_dict(found) else None


def is_dict(thing):
    """By its type: isinstance() asks a `__class__` that the program may have written."""
    return issubclass(type(thing), dict)


def is_tensor(thing):
    torch = sys.modules["torch"]
    return issubclass(type(thing), torch._C.TensorBase)


def read(tensor, name):
    """One of torch's own properties of a tensor; None where it has none."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunctionSubclass():
        try:
            return getattr(torch._C.TensorBase, name).__get__(tensor)
        except RuntimeError:
            _core.let_through()
            return None  # such as _version of an inference tensor


def everywhere():
    """All modules of the process."""
    base = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", None)
    return [] if base is None else _core.instances(base)


def roots(modules):
    """Those that are no one's child."""
    children = {id(child) for module in modules for _, child in _children(module)}
    return [module for module in modules if id(module) not in children]


def _children(module):
    found = own(module, "_modules")
    return [pair for pair in list(dict.items(found)) if pair[1] is not None] \
        if is_dict(found) else []  # fmt: skip


def below(root):
    """(module, prefix of its names) of the root and all that are in it, each once."""
    waiting, seen = [(root, "")], {id(root)}
    while waiting and len(seen) < _MOST:
        module, prefix = waiting.pop()
        yield module, prefix
        for key, child in _children(module):
            if id(child) not in seen and type(key) is str:
                seen.add(id(child))
                waiting.append((child, f"{prefix}{key}."))


def named(root):
    """{"layer1.0.weight": parameter} of all that are in the root."""
    found = {}
    for module, prefix in below(root):
        parameters = own(module, "_parameters")
        for key, parameter in list(dict.items(parameters)) if is_dict(parameters) else ():
            if parameter is not None and type(key) is str and len(found) < _MOST:
                found[prefix + key] = parameter
    return found
