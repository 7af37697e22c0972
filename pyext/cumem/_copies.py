# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A second copy of the weights: what a model was loaded from, and nobody let go.

Sizes and names alone say nothing: averages, target networks, reference models,
weights to go back to have the same.  So a copy is told only where

- the model's weights were written over once more than the copy's before the
  first step (torch counts the writes), as by ``load_state_dict()`` from it;
- a dict of tensors came from a file, and a module was not made by ``deepcopy``;
- blocks of its sizes exist that are no optimizer's; only then all objects are
  looked through for it, which takes as long as a full collection, and only where
  `_budget.py` allows it: who makes an optimizer for each of many tasks goes unseen;
- for as long as it was watched nobody wrote to it, no gradient was made for it,
  and no running function had it in its hands (``touched.h``).

What cannot be known is not told.  Nothing is kept alive: numbers are kept.
"""

import time
import weakref
from collections import OrderedDict

from . import _budget, _core, _modules

_OTHER, _PARAMETER = 0, 1
_LOADED, _DUPLICATED = 1, 2
_VERSIONS = 3  # after an optimizer's steps 1, 2, 4: then it is searched,
_WATCHED = 5  # and after step 16 what was found then is told
_MOST = 20_000
_LEAST_BYTES = 1 << 20
_WRAPPERS = ("module.", "_orig_mod.")

_versions = {}  # id of a parameter: (weak reference, its versions)
_events = {}  # id of an optimizer's first parameter: (weak reference, (times it told, the first))
_state = {"watched": [], "told": {}}  # keys of copies; and what stays of each


class Copy:
    """A dict or module that may be one, as it is now."""

    def __init__(self, category, owner, pairs):
        self.category, self.owner = category, owner
        blocks = {}
        for name, tensor, origin in pairs:
            blocks.setdefault(origin[0], (tensor, name, origin))
        self.tensors = [tensor for tensor, _, _ in blocks.values()]
        self.names = [name for _, name, _ in blocks.values()]
        self.key = tuple((id(tensor), _modules.read(tensor, "_version"), block)
                         for block, (tensor, _, _) in blocks.items())  # fmt: skip
        origins = [origin for _, _, origin in blocks.values()]
        _, _, _, site, device = max(origins, key=lambda origin: origin[1])
        self.numbers = site, device, sum(origin[1] for origin in origins), len(origins)

    def row(self):
        return self.category, self.owner, *self.numbers, self.names

    def trace(self):
        """What stays when it is gone: one of its tensors, and the row without its owner."""
        return weakref.ref(self.tensors[0]), (self.category, None, *self.numbers, self.names)

    def touchable(self):
        """What shows that it is used: its tensors, and the modules that they are in."""
        if self.category == _OTHER:
            return self.tensors
        return self.tensors + [module for module, _ in _modules.below(self.owner)]


def note_step(parameters, owned):
    """An optimizer of these has made 1, 2, 4, 8, ... steps.  True: there is something to tell.

    `owned()`: all tensors that optimizers know, which are no copies.
    """
    if not parameters:
        return False
    _forget_gone()
    events, first_ns = _known(_events, parameters[0]) or (0, time.monotonic_ns())
    events += 1
    _events[id(parameters[0])] = weakref.ref(parameters[0]), (events, first_ns)
    if events <= _VERSIONS:
        for parameter in parameters:
            seen = _known(_versions, parameter) or []
            if seen or len(_versions) < _MOST:
                seen.append(_modules.read(parameter, "_version"))
                _versions[id(parameter)] = weakref.ref(parameter), seen
    if (
        events == _VERSIONS
        and _budget.allows("copies")
        and _core.alike(owned(), first_ns) >= _LEAST_BYTES
    ):
        _watch()
    elif events > _WATCHED:
        _forget()
    return events == _WATCHED and _settle()


def _forget_gone():
    for table in (_versions, _events):
        for key in [key for key, (known, _) in table.items() if known() is None]:
            del table[key]


def is_told():
    """Whether a look has something to tell of copies."""
    return bool(_state["told"])


def _known(table, tensor):
    """What stands there of this very tensor, or None."""
    known, value = table.get(id(tensor), (None, None))
    return value if known is not None and known() is tensor else None


def found(ending=False):
    """The rows of the copies that were told and are what they were.

    `ending`: and of those that went with the program's last functions.
    """
    told = _state["told"]
    if not told:
        return []
    copies = {copy.key: copy.row() for copy in _search() if copy.key in told}
    if ending:
        copies.update((key, row) for key, (_, row) in told.items() if key not in copies)
    return list(copies.values())


def _watch():
    with _budget.walk("copies"):
        copies = _search()
    known = _core.touch([copy.touchable() for copy in copies])
    _state["watched"] = [copy.key for copy in copies] if known else []


def _settle():
    untouched = {key for key, touched in zip(_state["watched"], _core.touched()) if not touched}
    _core.touch([])
    _state["watched"] = []
    if untouched:
        with _budget.walk("copies"):
            copies = _search()
        _state["told"].update((copy.key, copy.trace()) for copy in copies if copy.key in untouched)
    return bool(_state["told"])


def _forget():
    """What the program let go, or wrote to, while it goes on, is no copy that lingers."""
    for key, (known, _) in list(_state["told"].items()):
        tensor = known()
        if tensor is None or _modules.read(tensor, "_version") != key[0][1]:
            del _state["told"][key]


def _search():
    modules = _modules.everywhere()
    tables = [(root, _plain(_modules.named(root))) for root in _modules.roots(modules)]
    models = [table for _, table in tables if _is_trained(table)]
    names = set().union(*models)
    others = [(_PARAMETER, root, table) for root, table in tables if not _is_trained(table)]
    others += [(_OTHER, one, _plain(table)) for one, table in _dicts(names)] if models else []
    found = []
    for category, owner, table in others:
        copies = (_compare(category, owner, model, table) for model in models)
        found += [copy for copy in copies if copy is not None][:1]
    return found


def _is_trained(table):
    return any(_known(_versions, parameter) for parameter in table.values())


def _plain(table):
    """Without what wrappers put before all names."""
    for prefix in _WRAPPERS:
        if table and all(name.startswith(prefix) for name in table):
            table = {name[len(prefix):]: tensor for name, tensor in table.items()}
    return table


def _dicts(names):
    """Dicts of tensors whose first key is a parameter's name."""
    for one in _core.instances(dict):
        if type(one) not in (dict, OrderedDict) or not dict.__len__(one):
            continue
        first = next(iter(dict.keys(one)))
        if type(first) is str and _plain_name(first) in names:
            table = {key: value for key, value in list(dict.items(one))[:_MOST]
                     if type(key) is str and _modules.is_tensor(value)}  # fmt: skip
            if not any(_modules.read(value, "requires_grad") for value in table.values()):
                yield one, table


def _plain_name(name):
    for prefix in _WRAPPERS:
        name = name.removeprefix(prefix)
    return name


def _compare(category, owner, model, table):
    """The Copy that this table is of the model's, or None."""
    pairs, bytes_of_model = [], 0
    for name, parameter in model.items():
        own, tensor = _core.origin(parameter), table.get(name)
        bytes_of_model += own[1] if own else 0
        if tensor is None or tensor is parameter or not own or _shape(tensor) != _shape(parameter):
            continue
        origin = _core.origin(tensor)
        if origin is None:
            continue
        if not _is_source(category, parameter, own, tensor, origin):
            return None
        pairs.append((name, tensor, origin))
    copied = sum({origin[0]: origin[1] for _, _, origin in pairs}.values())
    return Copy(category, owner, pairs) if copied >= max(_LEAST_BYTES, bytes_of_model // 2) else None


def _shape(tensor):
    return tuple(_modules.read(tensor, "shape") or ())


def _is_source(category, parameter, own, tensor, origin):
    before, version = _version_before(parameter), _modules.read(tensor, "_version")
    made = origin[2] == _LOADED if category == _OTHER else origin[2] != _DUPLICATED
    return (
        made
        and origin[0] != own[0]
        and before is not None
        and version is not None
        and before > version
        and _modules.read(tensor, "is_leaf")
        and _modules.read(tensor, "grad") is None
    )


def _version_before(parameter):
    """How often it had been written to before the first step: each step writes as often."""
    seen = _known(_versions, parameter)
    if seen is None:
        return _modules.read(parameter, "_version")  # not trained
    if len(seen) < _VERSIONS or None in seen:
        return None
    first, second, fourth = seen
    return 2 * first - second if fourth - second == 2 * (second - first) else None
