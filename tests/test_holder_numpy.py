# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What NumPy's arrays keep alive, though no collector sees it (pyext/objects/numpy_array.h)."""

import sys

import pytest

import cumem
from test_holders import ask, watched  # noqa: F401

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

ROWS = []


def test_arrays_that_share_memory_of_tensors():
    ROWS.extend(torch.zeros(64).numpy() for _ in range(12))
    (found,) = ask([row.base for row in ROWS])
    assert str(found.path).startswith(f"`{__name__}.ROWS` (list, 12 items) > [11] (numpy.ndarray) > .base > Tensor [64] ")
    assert (found.through, found.targets, found.unreached) == (12, 12, 0)
    assert found.advice.startswith("clear ROWS when it has been used")
    ROWS.clear()


def test_a_view_of_such_an_array():
    ROWS.extend(torch.zeros(64).numpy()[3:9] for _ in range(12))
    (found,) = ask([row.base.base for row in ROWS])
    assert found.unreached == 0 and str(found.path).startswith(f"`{__name__}.ROWS` (list, 12 items)")
    ROWS.clear()


class Memory:
    def __init__(self, *shape):
        self.rows = numpy.empty(shape, dtype=object)


def fill(rows, count):
    for i in range(count):
        rows.flat[i] = torch.zeros(64)
    return [each for each in rows.flat if each is not None]


@pytest.mark.parametrize("shape", [(40,), (5, 8), (2, 4, 5)])
def test_items_of_an_array(shape):
    memory = Memory(*shape)
    (found,) = ask(fill(memory.rows, 12))
    assert found.through == 12 and found.unreached == 0
    assert f"local `memory` ({__name__}.Memory) > .rows (numpy.ndarray, 40 items) > [11] > Tensor" in str(found.path)


@pytest.mark.parametrize("view", [lambda rows: rows[::-2], lambda rows: rows.T, lambda rows: rows[1:, 2:]])
def test_items_of_a_view_are_those_of_its_array(view):
    rows = view(numpy.full((6, 8), None, dtype=object))
    (found,) = ask(fill(rows, 9))
    assert found.unreached == 0 and "numpy.ndarray" in str(found.path)


def test_lists_in_an_array():
    memory = Memory(3)
    for i in range(3):
        memory.rows[i] = [torch.zeros(64) for _ in range(9)]
    (found,) = ask([each for row in memory.rows for each in row])
    assert found.advice.startswith("clear each list in rows")


def test_arrays_of_numbers_and_empty_ones_keep_nothing():
    arrays = [numpy.zeros(5), numpy.zeros((0, 3), dtype=object), numpy.array(3.0), numpy.array([], dtype=object),
              numpy.zeros(3, dtype=[("a", "O"), ("b", "f4")]), numpy.full(4, None, dtype=object)]
    box = [torch.zeros(64)]
    (found,) = ask([box[0]])
    assert len(arrays) == 6 and found.unreached == 0 and "ndarray" not in str(found.path)


def test_one_array_in_itself():
    rows = numpy.empty(4, dtype=object)
    rows[0], rows[1] = rows, torch.zeros(64)
    assert "numpy.ndarray" in "\n".join(map(str, cumem.why_alive(rows[1])))
    rows[0] = None


def test_no_reference_is_kept():
    rows = numpy.empty(4, dtype=object)
    rows[0] = torch.zeros(64)
    before = sys.getrefcount(rows), sys.getrefcount(rows[0])
    ask([rows[0]])
    assert (sys.getrefcount(rows), sys.getrefcount(rows[0])) == before
