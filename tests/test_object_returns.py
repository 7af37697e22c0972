# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What code says of what a function returns."""

import pytest

from objects_zoo import *  # noqa: F403


def empty_returns(probe, body):
    source = "def f(rows, n):\n" + "".join(f" {line}\n" for line in body.splitlines())
    return probe.code(in_its_file(source)["f"].__code__)["marked"]["empty_returns"]


@pytest.mark.parametrize("body", [
    "n.write(rows)\nreturn []", "return list()", "return {}", "rows = []; return rows",
    "n.x, rows = rows, []; return rows", "n.write(rows)\nrows = []\nprint('done')\nreturn rows", "if n:\n return []\nelse:\n return dict()",
    "for row in rows:\n n.write(row)\nreturn []", "kept = []\nfor row in rows:\n n.write(row)\nreturn kept",
    "if n is None: return None\nreturn []",
])
def test_a_function_that_returns_a_new_container(probe, body):
    assert empty_returns(probe, body)


@pytest.mark.parametrize("body", [
    "return rows", "return rows + [n]", "return [n]", "return rows or []", "return [] if n else rows", "return [], n",
    "if not rows: return []\nreturn rows + [n]", "if not rows: return []\nrows.append(n)\nreturn rows",
    "kept = []\nfor row in rows:\n kept.append(row)\nreturn kept", "kept = []\nkept += rows\nreturn kept",
    "kept = []\nadd = kept.append\nfor row in rows: add(row)\nreturn kept", "kept = []\nn(kept)\nreturn kept",
    "kept = []\nkept[:] = rows\nreturn kept", "kept = []\nn.x = kept\nn.fill()\nreturn kept",
    "kept = []\n[kept.append(row) for row in rows]\nreturn kept", "rows = []\nrows = n\nreturn rows",
    "kept = []\ndef add(): kept.append(n)\nadd()\nreturn kept", "print([])",
    "if not rows: return []\nreturn [row * n for row in rows]",
    "if n:\n kept = rows + [n]\nelse:\n kept = []\nprint('done')\nreturn kept",
])
def test_a_function_that_returns_what_it_has(probe, body):
    assert not empty_returns(probe, body)
