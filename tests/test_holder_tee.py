# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Of the iterators of an itertools.tee(), the one that lags behind is the
holder (pyext/holders/tee.h), whichever is met first.
"""

import itertools

import pytest

from test_holders import ask, watched  # noqa: F401

torch = pytest.importorskip("torch")


def stream(count):
    return (torch.zeros(3) for _ in range(count))


def lagging(count):
    ahead, behind = itertools.tee(stream(count))
    next(behind)
    return ask([each for each in ahead][1:])


def lagging_first(count):
    behind, ahead = itertools.tee(stream(count))
    next(behind)
    return ask([each for each in ahead][1:])


def three_of_them(count):
    ahead, middle, behind = itertools.tee(stream(count), 3)
    for _ in range(count // 2):
        next(middle)
    next(behind)
    return ask([each for each in ahead][1:])


class Loader:
    def __init__(self, count):
        self.batches, self.behind = itertools.tee(stream(count))
        next(self.behind)


def on_an_object(count):
    loader = Loader(count)
    return ask([each for each in loader.batches][1:])


# A block has 57 items.
@pytest.mark.parametrize("count", [20, 57, 58, 200, 1000])
@pytest.mark.parametrize("program", [lagging, lagging_first, three_of_them, on_an_object])
def test_the_one_that_lags_is_told(program, count):
    (found,) = program(count)
    assert "behind" in str(found.path) and "_tee" in str(found.path)
    assert found.rule == "tee lags behind", (found.rule, found.path)
    assert found.advice.startswith("take from behind as often"), found.advice


def test_twin_in_step_holds_nothing():
    first, second = itertools.tee(stream(70))
    kept = []
    for one, _ in zip(first, second):
        kept.append(one)
    (found,) = ask(list(kept))
    assert found.rule == "container grows" and "kept" in found.advice
