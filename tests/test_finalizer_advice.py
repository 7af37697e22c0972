# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The rule for what weakref.finalize() keeps (graph/finalizer.h), as in
test_holder_advice.py.
"""

import weakref

import pytest

from test_holder_advice import GLOBAL, Programs, check_advice
from test_holders import ask, watched  # noqa: F401

torch = pytest.importorskip("torch")

program = Programs()


class Batch:
    def __init__(self):
        self.x = torch.zeros(4)

    def close(self):
        pass


@program("weakref.finalize", "is an argument of weakref.finalize()", "detach()")
def arguments_of_finalizers():
    GLOBAL.owner = Batch()
    kept = [torch.zeros(4) for _ in range(4)]
    for one in kept:
        weakref.finalize(GLOBAL.owner, id, one)
    return ask(kept)


@program("weakref.finalize", "each Batch is an argument of weakref.finalize()")
def objects_that_finalizers_are_given():
    GLOBAL.owner = Batch()
    kept = [Batch() for _ in range(4)]
    for one in kept:
        weakref.finalize(GLOBAL.owner, id, one)
    newest = kept[-1].x
    del kept, one
    registry = list(weakref.finalize._registry.values())
    return ask([info.args[0].x for info in registry if info.func is id
                and isinstance(info.args[0], Batch)] + [newest])


@program("weakref.finalize", "keeps its function")
def methods_that_finalize():
    GLOBAL.owner = Batch()
    for _ in range(4):
        weakref.finalize(GLOBAL.owner, Batch().close)
    registry = weakref.finalize._registry.values()
    return ask([info.func.__self__.x for info in registry
                if isinstance(getattr(info.func, "__self__", None), Batch)])


@program("container grows", "clear ")
def list_that_a_finalizer_has():
    GLOBAL.owner, kept = Batch(), []
    weakref.finalize(GLOBAL.owner, id, kept)
    kept.extend(torch.zeros(4) for _ in range(4))
    return ask(list(kept))


@pytest.mark.parametrize("function, rule, words", program)
def test_advice(function, rule, words):
    check_advice(function, rule, words)


def test_line_of_the_library_is_not_told():
    (found,) = arguments_of_finalizers()
    assert found.lines == [] and found.place[1] == "._registry"
