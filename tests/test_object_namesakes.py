# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A class of the program's that has the name of a type made in C is read as any other class."""

import sysconfig

import pytest

import cumem

pytestmark = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="declines on free-threaded builds")


class Thing:
    pass


@pytest.mark.parametrize("name", ["collections.deque", "functools._lru_cache_wrapper", "hamt"])
def test_a_class_with_the_name_of_a_c_type(name):
    asked = []
    body = {"__slots__": ("kept", "__wrapped__"), "maxlen": property(asked.append)}
    holder = type(name, (), body)()
    holder.kept, holder.__wrapped__ = [Thing()], lambda: None
    (path,) = cumem.why_alive(holder.kept[0])
    place = f"local `holder` ({__name__}.{name}) > .kept (list, 1 item) > [0] > {__name__}.Thing"
    assert str(path).endswith(place), path
    assert asked == []
