# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The references shown are those that the collector sees."""

import collections
import ctypes
import functools
import gc
import types

import pytest

from objects_zoo import *  # noqa: F403


def test_references_are_those_the_collector_sees(probe):
    things = tame_zoo()
    for thing in things + gc.get_objects()[:20000]:
        seen = probe.edges(thing)
        expected = counted(gc.get_referents(thing))
        assert counted(item[0] for item in seen) == expected, type(thing)


@pytest.mark.skipif(PUBLIC_ONLY, reason="dict only")
def test_almost_every_reference_of_a_process_has_a_name(probe):
    things = gc.get_objects()
    unnamed = collections.Counter()
    count = 0
    for thing in things:
        for referent, label, _ in probe.edges(thing):
            count += 1
            unnamed[type(thing)] += label == "" and gc.is_tracked(referent)
    assert sum(unnamed.values()) < count * 0.01, unnamed.most_common(5)


def test_random_structures(probe):
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    keys = st.one_of(st.text(), st.integers(), st.floats(), st.binary(),
                     st.none(), st.booleans(), st.tuples(st.integers()))

    def larger(inner):
        return st.one_of(
            st.lists(inner), st.lists(inner).map(tuple),
            st.dictionaries(keys, inner), st.lists(keys).map(set),
            st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True),
                            inner).map(lambda names: node(**names)),
            st.lists(inner).map(ListNode), inner.map(closure),
            inner.map(lambda x: started(generator(x))), inner.map(caught),
            inner.map(returned_frame), inner.map(types.CellType),
            inner.map(lambda x: functools.partial(print, x)))

    @hypothesis.settings(max_examples=150, deadline=None, database=None,
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(st.recursive(keys, larger, max_leaves=30))
    def check(structure):
        things, known = [structure], set()
        while things:
            thing = things.pop()
            if id(thing) in known or isinstance(thing, (
                    type, types.ModuleType)) or len(known) > 300:
                continue
            known.add(id(thing))
            assert probe.describe(thing)["label"] != ""
            seen = probe.edges(thing)
            assert counted(item[0] for item in seen) == counted(
                gc.get_referents(thing))
            things.extend(item[0] for item in seen)

    check()


def test_only_wanted_references_are_shown(probe):
    wanted = [1]
    for count in (1, 7, 8, 9, 300):
        made = [[0] for _ in range(500)]
        for i in range(count):
            made[i * 500 // count] = wanted
        seen = probe.edges(made, wanted)
        assert sorted(label for _, label, _ in seen) == sorted(
            f"[{i * 500 // count}]" for i in range(count))


def test_keys_without_end_are_bounded(probe):
    assert probe.renew()
    probe.show_texts(True)
    assert edges(probe, {"a key": MARK}, MARK) == [("['a key']", VALUE)]
    made = {i: MARK for i in range(60000)}
    labels = {label for _, label, _ in probe.edges(made, MARK)}
    assert "[*]" in labels and 40000 < len(labels) <= 50001
    assert edges(probe, {"a name": MARK}, MARK) == [("[*]", VALUE)]
    assert edges(probe, {"a key": MARK}, MARK) == [("[*]", VALUE)]
    assert edges(probe, {"name": MARK}, MARK) == [("['name']", VALUE)]
    assert probe.renew()
    probe.show_texts(True)
    assert edges(probe, {"a name": MARK}, MARK) == [("['a name']", VALUE)]


def test_half_built_objects(probe):
    api = ctypes.pythonapi
    api.PyTuple_New.restype = ctypes.py_object
    api.PyList_New.restype = ctypes.py_object
    for made in (api.PyTuple_New(3), api.PyList_New(0), Slotted(),
                 object.__new__(Node), Error.__new__(Error),
                 types.CellType(), functools.partial.__new__(
                     functools.partial, len)):
        assert probe.describe(made)["label"] != ""
        assert counted(item[0] for item in probe.edges(made)) == counted(
            gc.get_referents(made))


def test_an_overflowing_container_is_read_in_linear_time(probe):
    made = [[] for _ in range(200000)]
    assert len(probe.edges(made)) == 200000
    assert probe.renew()
    large = {i: made for i in range(200000)}
    assert len(probe.edges(large, made)) == 200000
    assert probe.renew()
