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


def test_who_makes_what_is_stored(probe):
    source = """def f(self, rows, x, k):
 self.bank = keep(torch.cat([self.bank, x]), 9)
 rows = self.newest(cat(rows, x)).clone()
 self.banks[k] = keep(rows)
 self.state = torch.zeros(4).sum()
 self.last = keep(rows).clone
 rows = [keep(rows)]
 rows = keep(rows)[0]
 k = rows
 rows = rows if k else keep(rows)
 self.banks[k] = None if x else keep(rows)
"""
    told = probe.code(function_of(source).__code__)
    assert told["marked"]["by"] == {2: "keep", 3: "newest", 4: "keep", 5: "sum", 10: "keep"}


def test_a_part_is_left_of_an_item(probe):
    source = """def f(self, banks, x, k):
 banks[k] = torch.cat([banks[k], x])[-9:]
 self.banks[k] = torch.cat((x, self.banks[k]))[:9].clone()
 bank = torch.cat([banks[k], x])
 banks[k] = bank[-9:]
 banks[k] = banks[k][-9:]
 banks[k] = torch.cat([banks[k], x])
 banks[k] = x[-9:]
 banks[-9:] = x
"""
    told = probe.code(function_of(source).__code__)
    assert told["marked"]["given"] == [2, 3, 5, 6]


def test_what_is_no_part_of_an_item(probe):
    source = """def f(self, banks, x, k, j):
 banks[k] = banks[j]
 banks["q"] = banks["q"][-9:]
 banks["q"] = banks["k"][-9:]
"""
    told = probe.code(function_of(source).__code__)
    assert told["marked"]["given"] == [3]


def test_of_what_a_part_is_returned(probe):
    source = """def f(rows, x, k):
 if k == 1: return rows[-9:]
 if k == 2: return torch.cat([rows, x])[-9:]
 merged = torch.cat([rows, x])
 if k == 4: return merged[-9:]
 if k == 5: return merged
 if k == 6: return x.narrow(0, 0, 9)
 return []
"""
    told = probe.code(in_its_file(source)["f"].__code__)
    assert [store[2] for store in told["own"] if store[0] == STORE_RETURN] == ["rows", "", "", "x", ""]


def test_what_is_left_of_a_parameter_is_returned(probe):
    source = """def f(rows, x, k):
 if k > 9:
  rows = rows[-9:]
 if k == 1: return rows
 if k == 2: return rows.clone()
 if k == 3: return torch.cat([rows, x])
 merged = torch.cat([rows, x])
 merged = merged[-9:]
 return merged.clone()
"""
    told = probe.code(in_its_file(source)["f"].__code__)
    assert [store[2] for store in told["own"] if store[0] == STORE_RETURN] == ["rows", "rows", ""]
