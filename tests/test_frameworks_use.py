# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Bytes per framework on a device: only frameworks in use are asked, and no
device is touched for it."""

import sys
import types

import pytest

from cumem import _frameworks

NAMES = ("torch", "cupy", "jax", "jax._src.xla_bridge", "rmm", "rmm.mr", "numba")


@pytest.fixture(autouse=True)
def nothing_imported(monkeypatch):
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(_frameworks, "_has_context", lambda index: index < 2)


def module(monkeypatch, name, **content):
    made = types.ModuleType(name)
    vars(made).update(content)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def refuse(*_):
    raise AssertionError("asked a framework that is not in use")


def space(**content):
    return types.SimpleNamespace(**content)


def add_torch(monkeypatch, initialized=True):
    stats = {"allocated_bytes": {"all": {"current": 5}}, "reserved_bytes": {"all": {"current": 9}}}
    module(monkeypatch, "torch", cuda=space(
        is_initialized=lambda: initialized, device_count=lambda: 2,
        memory_stats_as_nested_dict=(lambda index: stats if index == 0 else {}) if initialized
        else refuse))


def add_cupy(monkeypatch, current=0):
    state = {"device": current, "set": []}

    def set_device(index):
        state["device"] = index
        state["set"].append(index)

    pool = space(used_bytes=lambda: 10 + state["device"],
                 total_bytes=lambda: 20 + state["device"])
    module(monkeypatch, "cupy", get_default_memory_pool=lambda: pool,
           cuda=space(runtime=space(getDevice=lambda: state["device"],
                                    setDevice=set_device)))
    return state


def add_jax(monkeypatch, **stats):
    def device(index):
        return space(local_hardware_id=index,
                     memory_stats=lambda: {**stats, "bytes_in_use": 30 + index})

    client = space(local_devices=lambda: [device(0), device(1)])
    module(monkeypatch, "jax._src.xla_bridge", _backends={
        "cpu": space(local_devices=refuse), "cuda": client})


def of(package, **attributes):
    """An object of a class of that package."""
    made = type("Made", (), {"__module__": package})()
    vars(made).update(attributes)
    return made


def test_nothing_imported_is_nothing_asked():
    before = set(sys.modules)
    assert _frameworks.use(0) == {}
    assert not {"torch", "cupy", "jax", "rmm", "numba"} & (set(sys.modules) - before)


def test_each_framework_is_told_apart(monkeypatch):
    add_torch(monkeypatch)
    add_cupy(monkeypatch)
    add_jax(monkeypatch, pool_bytes=50)
    assert _frameworks.use(0) == {"torch": (5, 9), "cupy": (10, 20), "jax": (30, 50)}


def test_torch_without_a_device_is_not_asked(monkeypatch):
    add_torch(monkeypatch, initialized=False)
    assert _frameworks.use(0) == {}


def test_torch_has_no_such_device(monkeypatch):
    add_torch(monkeypatch)
    assert _frameworks.use(2) == {}
    assert _frameworks.use(1) == {}


@pytest.mark.parametrize("past, expected", [
    ({"peak": 9, "allocated": 20}, {"torch": (0, 0)}), ({"peak": 9}, {"torch": (0, 0)}),
    ({"peak": 0, "allocated": 20}, {"torch": (0, 0)}),  # after reset_peak_memory_stats()
    ({"peak": 0, "allocated": 0}, {})])
def test_a_device_whose_memory_was_all_given_back_is_in_use(monkeypatch, past, expected):
    add_torch(monkeypatch)
    stats = sys.modules["torch"].cuda.memory_stats_as_nested_dict(0)
    stats["allocated_bytes"]["all"]["current"] = 0
    stats["reserved_bytes"]["all"] = {"current": 0, **past}
    assert _frameworks.use(0) == expected


def test_cupy_device_is_current_again(monkeypatch):
    state = add_cupy(monkeypatch)
    assert _frameworks.use(1) == {"cupy": (11, 21)}
    assert state == {"device": 0, "set": [1, 0]}


def test_cupy_makes_no_context(monkeypatch):
    state = add_cupy(monkeypatch)
    assert _frameworks.use(2) == {}
    assert state["set"] == []
    state = add_cupy(monkeypatch, current=3)
    assert _frameworks.use(1) == {}
    assert state["set"] == []


def test_cupy_device_is_current_again_after_an_error(monkeypatch):
    state = add_cupy(monkeypatch)
    sys.modules["cupy"].get_default_memory_pool = refuse
    assert _frameworks.use(1) == {}
    assert state["device"] == 0


def test_jax_without_backends_is_not_asked(monkeypatch):
    module(monkeypatch, "jax._src.xla_bridge", _backends={}, backends=refuse)
    assert _frameworks.use(0) == {}


def test_jax_without_a_pool_has_reserved_what_it_holds(monkeypatch):
    add_jax(monkeypatch)
    assert _frameworks.use(1) == {"jax": (31, 31)}


def test_rmm_is_asked_where_statistics_are_on(monkeypatch):
    class StatisticsResourceAdaptor:
        __module__ = "rmm.mr"
        allocation_counts = space(current_bytes=7)

        def get_upstream(self):
            return of("rmm.mr", pool_size=lambda: 64)

    resources = [StatisticsResourceAdaptor(), space()]
    module(monkeypatch, "rmm.mr",
           StatisticsResourceAdaptor=StatisticsResourceAdaptor,
           get_per_device_resource=resources.__getitem__)
    assert _frameworks.use(0) == {"rmm": (7, 64)}
    assert _frameworks.use(1) == {}
    assert _frameworks.use(2) == {}


def test_rmm_pool_is_known_without_statistics(monkeypatch):
    pool = of("rmm.mr", pool_size=lambda: 64)
    module(monkeypatch, "rmm.mr", get_per_device_resource=[pool, space()].__getitem__)
    assert _frameworks.use(0) == {"rmm": (0, 64)}
    assert _frameworks.use(1) == {}
    sys.modules["rmm.mr"].get_per_device_resource = lambda index: of("rmm.mr", get_upstream=lambda: pool)
    assert _frameworks.use(0) == {"rmm": (0, 64)}


def test_cupy_pool_of_the_programs_own(monkeypatch):
    class Pool:
        __module__ = "cupy.cuda.memory"
        used_bytes, total_bytes = (lambda self: 3), (lambda self: 4)
        malloc = lambda self, size: None  # noqa: E731

    add_cupy(monkeypatch)
    cupy = sys.modules["cupy"]
    own = Pool()
    for allocator, expected in [(own.malloc, (13, 24)), (refuse, (10, 20))]:
        cupy.cuda.get_allocator = lambda allocator=allocator: allocator
        assert _frameworks.use(0) == {"cupy": expected}
    cupy.cuda.get_allocator, cupy.get_default_memory_pool = (lambda: own.malloc), (lambda: own)
    assert _frameworks.use(0) == {"cupy": (3, 4)}


def test_what_the_program_gave_is_not_asked(monkeypatch):
    """Its attributes are its own code, which may wait for a lock of its own."""
    class Mine:
        asked = []
        malloc = lambda self, size: None  # noqa: E731

        def __getattribute__(self, name):
            Mine.asked.append(name)
            return object.__getattribute__(self, name)

    mine = Mine()
    add_cupy(monkeypatch)
    for allocator in (mine.malloc, mine):
        sys.modules["cupy"].cuda.get_allocator = lambda allocator=allocator: allocator
        Mine.asked.clear()
        assert _frameworks.use(0) == {"cupy": (10, 20)}
        module(monkeypatch, "rmm.mr", get_per_device_resource=lambda index: mine)
        assert "rmm" not in _frameworks.use(0)
        assert Mine.asked == []
        monkeypatch.delitem(sys.modules, "rmm.mr")


def test_objects_are_counted_where_no_pool_has_them(monkeypatch):
    held = {"numba": (3, 4), "cupy": (15, 16), "jax": (1, 2), "rmm": (7, 8)}
    monkeypatch.setattr(_frameworks._core, "objects_use", lambda index: held if index == 0 else {})
    add_cupy(monkeypatch)
    add_jax(monkeypatch, pool_bytes=50)
    assert _frameworks.use(0) == {"cupy": (15, 20), "jax": (30, 50), "numba": (3, 4), "rmm": (7, 8)}
    assert _frameworks.use(1) == {"cupy": (11, 21), "jax": (31, 50)}


def test_objects_in_the_memory_of_rmm_are_counted_once(monkeypatch):
    held = {"numba": (3, 4), "torch": (5, 6), "rmm": (7, 8)}
    monkeypatch.setattr(_frameworks._core, "objects_use", lambda index: held)
    module(monkeypatch, "rmm.allocators.torch")
    assert _frameworks.use(0) == held
    module(monkeypatch, "rmm.mr", get_per_device_resource=lambda index: of("rmm.mr", pool_size=lambda: 64))
    assert _frameworks.use(0) == {"rmm": (7, 64), "numba": (3, 4)}


def test_framework_that_raises_is_left_out(monkeypatch):
    add_torch(monkeypatch)
    add_cupy(monkeypatch)
    sys.modules["torch"].cuda.memory_stats_as_nested_dict = refuse
    assert _frameworks.use(0) == {"cupy": (10, 20)}
