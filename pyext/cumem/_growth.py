# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What of the model's each line allocates, and looks at what grows.

The core keeps the numbers and judges them; it asks here which tensors are
parameters, gradients and optimizer state, and what they are called.  Only
attributes in instance dictionaries and torch's own C getters are read: no code
of the program runs.
"""

import weakref

from . import _budget, _copies, _core, _memory, _modules

PARAMETER, GRADIENT, OPTIMIZER = range(1, 4)
OPTIMIZER_AGAIN = -OPTIMIZER  # of a parameter for which another optimizer has one
_MOST_ROWS = 20_000

_optimizers = []  # weak references
_state = {"told": 0, "early": 0}  # findings: what was told, what only the document says


def growth():
    """What grows, or stays where it need not: the table of this process.

    Returns
    -------
    list of dict
        One for each line that allocates what grows: ``verdict`` ("growing",
        "leak", "lingering", "settled"), ``category``, ``device``,
        ``bytes_per_iteration``, ``since_iteration``, ``bytes`` and ``count``
        live now, ``holder`` (from a named root), ``frames`` (of the
        allocation), ``advice``, ``series`` ([iteration, count, bytes]).
        Empty where nothing is observed.

    Notes
    -----
    Bytes that live at the end of each iteration, by allocation stack; a robust
    slope (Theil 1950, Sen 1968) with a trend test (Mann 1945, Kendall 1975).
    """
    from . import _runtime

    report = _runtime.report_now(look)
    sites = {site["id"]: site for site in report.get("sites", ())}
    rows = []
    for row in report.get("growth", ()):
        site = sites.get(row.get("site"))
        rows.append({**row, "frames": site["frames"] if site else []})
    return rows


def note_optimizer(optimizer, warned):
    """Its parameters, their gradients and its state are of the model."""
    if not any(known() is optimizer for known in _optimizers):
        try:
            _optimizers[:] = [known for known in _optimizers if known() is not None]
            _optimizers.append(weakref.ref(optimizer))
        except TypeError:
            _core.let_through()
    rows = _rows_of(optimizer, {}, set())
    _core.categories(rows)
    parameters = [tensor for tensor, kind, _ in rows if kind == PARAMETER]
    if warned and _copies.note_step(parameters, _owned):
        look_when_due("leak")


def _owned():
    """All tensors that the optimizers know."""
    trained = set()
    return [row[0] for known in _optimizers for row in _rows_of(known(), {}, trained)]


def look(ending=False, aloud=True, why="leak"):
    """Find who holds what grows, and tell the document, and if `aloud` whoever is warned."""
    with _budget.walk(why):
        told = _look(ending, aloud)
    if aloud:
        _state["told"] = told or (_state["told"] and _core.growing())
    _state["early"] = 0 if aloud else told
    spent = _budget.spent()
    _core.looked(spent["count"], spent["seconds"])
    return told


def _look(ending, aloud):
    rows, trained = [], set()
    parameters = _parameters()
    names = {id(parameter): name for parameter, name in parameters}
    for known in list(_optimizers):
        optimizer = known()
        if optimizer is not None:
            rows += _rows_of(optimizer, names, trained)
        del optimizer
    rows += [(parameter, PARAMETER, name) for parameter, name in parameters
             if id(parameter) not in trained]  # fmt: skip
    del names, parameters
    _core.categories(rows)
    return _core.growth(rows, _free_bytes(), _copies.found(ending), aloud, ending)


def look_now(ending=False):
    """Before a report: at the end who held it was seen before, and is kept."""
    if _is_open() or _state["early"] or _copies.is_told():
        look(ending)


def _is_open():
    """Something grows, or was told to, and whoever was told has not heard that it stopped."""
    return _state["told"] or _core.growing()


def look_when_due(why):
    """Not more often than is paid for; but the first verdicts of a run are heard at once.

    `why`: "leak" for a new one, "lingering" for what lingers or is as it was no more, "bounded" for
    what had an end when it was looked at last; None: no verdict is new.
    """
    if why and _budget.allows(why) or _is_open() and _budget.is_paid():
        look(why=why or "leak")


def look_early():
    """While it is too early to tell anybody: who holds it may be gone when it is not."""
    if _core.growing() and _budget.allows("early"):
        look(aloud=False, why="early")


def _rows_of(optimizer, names, trained):
    """(tensor, kind, name) of all that this optimizer knows; what another one trains too, and
    was told of by that (`trained`: ids), is left out.  Of what several keep for a
    parameter (`trained`: id and key) that of one is no OPTIMIZER_AGAIN."""
    rows = []
    own_name = type.__dict__["__name__"].__get__(type(optimizer))
    for group in _items(_modules.own(optimizer, "param_groups")):
        for parameter in _items(group.get("params") if type(group) is dict else None):
            if (
                len(rows) > _MOST_ROWS
                or not _modules.is_tensor(parameter)
                or id(parameter) in trained
            ):
                continue
            trained.add(id(parameter))
            name = names.get(id(parameter), "")
            rows.append((parameter, PARAMETER, name))
            gradient = _modules.read(parameter, "grad")
            if gradient is not None:
                rows.append((gradient, GRADIENT, f"{name}.grad" if name else ""))
    state = _modules.own(optimizer, "state")
    for parameter, entry in list(dict.items(state)) if _modules.is_dict(state) else ():
        name = names.get(id(parameter), "")
        for key, tensor in list(dict.items(entry)) if _modules.is_dict(entry) else ():
            if _modules.is_tensor(tensor) and len(rows) <= _MOST_ROWS and type(key) is str:
                again = (id(parameter), key) in trained
                trained.add((id(parameter), key))
                kind = OPTIMIZER_AGAIN if again else OPTIMIZER
                rows.append((tensor, kind, f"{own_name}.{name}.{key}" if name else ""))
    return rows


def _items(thing):
    return list(thing) if type(thing) in (list, tuple) else []


def _parameters():
    """[(parameter, "layer1.0.weight")], from the modules that are no one's child."""
    names = {}
    for root in _modules.roots(_modules.everywhere()):
        for name, parameter in _modules.named(root).items():
            if _modules.is_tensor(parameter):
                names.setdefault(id(parameter), (parameter, name))
    return list(names.values())


def _free_bytes():
    """{device index: bytes that can still be allocated}."""
    found = {}
    for index in _memory.devices():
        _, _, free, _, _, _ = _core.process_use(index)
        cached = sum(
            reserved - allocated for allocated, reserved in _memory._frameworks.use(index).values()
        )
        if free is not None:
            found[index] = free + cached
    return found
