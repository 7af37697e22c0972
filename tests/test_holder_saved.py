# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What a custom autograd Function keeps on its ctx (graph/saved.h) is told as
that, also where its graph is dead already.
"""

import gc

import pytest

from test_holders import ask, watched  # noqa: F401

torch = pytest.importorskip("torch")


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.out = x * torch.sigmoid(x)
        return ctx.out

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.out


def results(count):
    """Of graphs that hold themselves; to read them needs the collector's list."""
    for _ in range(count):
        Swish.apply(torch.ones(64, requires_grad=True)).sum().backward()
    return [each.out for each in gc.get_objects() if type(each).__name__ == "SwishBackward"]


@pytest.fixture
def not_collecting():
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def test_the_advice_names_the_class(not_collecting):
    (found,) = ask(results(12))
    assert found.rule == "saved on ctx", (found.rule, found.path)
    assert found.advice == "keep what Swish.backward() needs by ctx.save_for_backward(), " \
        "not as attributes of ctx"
    assert "SwishBackward > .out" in str(found.path)


def test_a_dead_container_goes_by_who_has_it(not_collecting):
    class Node:
        def __init__(self):
            self.items = {"x": torch.zeros(64)}
            self.me = self

    for _ in range(12):
        Node()
    found = ask([each.items["x"] for each in gc.get_objects() if type(each) is Node])
    assert "Node > .items" in str(found[0].path), found[0].path
    assert found[0].rule == "dead cycle"


def test_a_dead_container_that_nobody_has_is_told_itself(not_collecting):
    for _ in range(12):
        pair = [torch.zeros(77)]
        pair.append(pair)
    del pair
    found = ask([each[0] for each in gc.get_objects()
                 if type(each) is list and len(each) == 2 and each[1] is each])
    assert found[0].rule == "dead cycle" and "list" in str(found[0].path)
