# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Whether code reads what it sets before it sets it: pyext/code/touch.h."""

import pytest

from objects_zoo import *  # noqa: F403

VARIABLE, ATTRIBUTE_OF, ITEM_OF = range(3)
READS, SETS, REPEATS = (1, 0, 0), (0, 1, 0), (0, 1, 1)


def functions(source):
    """Code of the functions that a module makes."""
    code = compile(source, "told.py", "exec")
    return [one for one in code.co_consts if isinstance(one, types.CodeType)]


def told(probe, kind, source, other_self=False, **options):
    """(reads, sets, repeats) of the name x in the first function, or in the module."""
    code = (functions(source) or [compile(source, "told.py", "exec")])[0]
    return probe.touch(code, kind, "x", other_self, *options.values())


@pytest.mark.parametrize("body, expected", [
    ("s.x = f()\n g(s.x)", SETS),
    ("g(s.x)\n s.x = f()", (1, 1, 0)),
    ("s.x = f(s.x)", (1, 1, 0)),
    ("s.x += f()", (1, 1, 0)),
    ("s.x, y = f()\n s.x = f(s.x, y)", SETS),
    ("s.x = y = f()\n s.x.add_(y)", SETS),
    ("return s.y", (0, 0, 0)),
    ("return s.x()", (0, 0, 0)),  # a tensor is not called
    ("del s.x", SETS),
    ("return s.x", READS),
    ("x = f()\n return x", (0, 0, 0)),
    # another object's
    ("s.x = f()\n t.x = f(t.x)", (1, 1, 0)),
    ("s.t.x = f()\n s.t.x = f(s.t.x)", SETS),
    ("s.t.x = f()\n s.u.x = f(s.u.x)", (1, 1, 0)),
    ("s.t.x = f()\n t.t.x = f(t.t.x)", (1, 1, 0)),
    ("f().x = 1\n f().x = f().x", (1, 1, 0)),
    # branches
    ("if t: s.x = f()\n s.x = f(s.x)", (1, 1, 0)),
    ("if t: s.x = f()\n else: s.x = g()\n s.x = f(s.x)", SETS),
    ("if t is None: s.x = f()\n else: s.x = f(s.x)", (1, 1, 0)),
    ("if t is None: return\n s.x = f()\n if t: s.x = f(s.x)", SETS),
    ("t and s.x.f()\n s.x = f()", (1, 1, 0)),
    # loops: what comes before one is not of its turn, and what comes after it is
    ("for i in t:\n  s.x = f()\n  g(s.x)\n g(s.x)", REPEATS),
    ("s.x = f()\n for i in t:\n  s.x = f(s.x)", (1, 1, 1)),
    ("s.x = f()\n for i in t:\n  if i: s.x = g()\n  g(s.x)", (1, 1, 1)),
    ("s.x = f()\n for i in t:\n  g(s.x)\n  if i: continue\n  g(s.x)", SETS),
    ("while t:\n  s.x = f()\n  if g(s.x): continue\n  g(s.x)", REPEATS),
    ("while True:\n  s.x = f()\n  for i in t: g(s.x)\n  if g(): break", REPEATS),
    ("for i in t:\n  s.x = f()\n  for k in i: s.x = f(s.x)", (1, 1, 1)),
    ("for i in t:\n  g(s.x)\n  s.x = f()", (1, 1, 1)),
    # exceptions
    ("s.x = f()\n with f():\n  g(s.x)\n g(s.x)", SETS),
    ("for i in t:\n  with f():\n   s.x = f()\n   g(s.x)\n  g(s.x)", REPEATS),
    ("try: s.x = f()\n except E: g()\n s.x = f(s.x)", SETS),
    ("try: s.x = f()\n except E: s.x = f(s.x)", (1, 1, 0)),
    # by a text
    ("s.x = f(getattr(s, 'x'))", (1, 1, 0)),
    ("s.x = f()\n log('x', 3)", SETS),
])
def test_an_attribute(probe, body, expected):
    assert told(probe, ATTRIBUTE_OF, f"def run(s, t):\n {body}\n") == expected


@pytest.mark.parametrize("body, expected", [
    ("s.x = f()\n s.look()", SETS),
    ("s.look()\n s.x = f()", (1, 1, 0)),
    ("s.look()", READS),
    ("s.look", READS),
    ("s.x = f()\n t.look()", (1, 1, 0)),
    ("s.x = f()\n g(s.look)", SETS),
    ("s.t.x = f()\n s.t.look()", SETS),
    ("s.t.x = f()\n s.look()", (1, 1, 0)),
    ("if t: s.x = f()\n s.look()", (1, 1, 0)),
    ("for i in t:\n  s.x = f()\n  s.look(i)", REPEATS),
    ("for i in t:\n  s.look(i)\n  s.x = f()", (1, 1, 1)),
    ("s.x = f()\n look(s)", SETS),
    ("look(s)\n s.x = f()", (1, 1, 0)),
    ("s.x = f()\n s.looks()", SETS),
    ("s.looks()", (0, 0, 0)),
    ("look = t\n return look", (0, 0, 0)),
])
def test_a_function_that_reads(probe, body, expected):
    (reader,) = functions("def look(s): s.x")
    source = f"def run(s, t):\n {body}\n"
    assert told(probe, ATTRIBUTE_OF, source, reader=reader) == expected


@pytest.mark.parametrize("source, expected", [
    ("def run(s):\n s.x = f()\n g(lambda: s.x)", SETS),
    ("def run(s):\n def look(): return s.x\n s.x = f()\n g(look)", (1, 1, 0)),
    ("class Run:\n def look(s): return s.x", (0, 0, 0)),
])
def test_a_function_that_reads_made_there(probe, source, expected):
    (run,) = functions(source)
    (reader,) = [one for one in run.co_consts if isinstance(one, types.CodeType)]
    assert probe.touch(run, ATTRIBUTE_OF, "x", False, reader) == expected


@pytest.mark.parametrize("body, expected", [
    ("s.go()\n g(s.x)", (0, 0, 0)),
    ("g(s.x)\n s.go()", READS),
    ("y = s.go(t)\n g(s.x)", (0, 0, 0)),
    ("s.go(s.x)\n g(s.x)", READS),
    ("s.go(t, s.x.f())", READS),
    ("s.go([f(s.x, i) for i in t] + [s.x])", READS),
    ("s.go(f() if t else s.x)", READS),
    ("s.go(f() if t else g())\n g(s.x)", READS),  # not followed
    ("t.go()\n g(s.x)", READS),
    ("s.t.go()\n g(s.x)", READS),
    ("if t: s.go()\n g(s.x)", READS),
    ("if s.go(): g(s.x)", READS),  # not followed
    ("for i in t:\n  s.go()\n  g(s.x)\n g(s.x)", (0, 0, 1)),
    ("for i in t:\n  g(s.x)\n  s.go()", (1, 0, 1)),
    ("go(s)\n g(s.x)", READS),
    # go() is another's here
    ("t.go()\n s.x = f()\n g(s.x)", SETS),
    ("s.t.go()\n s.x = f()\n s.t.go()\n g(s.x)", SETS),
])
def test_a_method_that_sets(probe, body, expected):
    (setter,) = functions("def go(s): s.x = 1")
    source = f"def run(s, t):\n {body}\n"
    assert told(probe, ATTRIBUTE_OF, source, other=setter, reads=False) == expected


@pytest.mark.parametrize("source, always", [
    ("def go(s):\n s.x = f()", True),
    ("def go(s):\n if f(): return 1\n s.x = f()", False),
    ("def go(s):\n if f(): s.x = 1\n else: s.x = 2\n return s.x", True),
    ("def go(s):\n if f(): s.x = 1", False),
    ("def go(s):\n s.x = f(s.x)", False),
    ("def go(s, t):\n t.x = f()", False),
    ("def go(s):\n yield f()\n s.x = f()", False),
    ("async def go(s): s.x = f()", False),
    ("def go(s):\n try: s.x = f()\n except E: return 2", False),
    ("def go(s):\n with f(): s.x = f()", False),  # f() may swallow what is raised
    ("def go(s):\n for i in f(): s.x = i", True),
    ("def go(s):\n return s.y", False),
])
def test_a_function_that_sets_always(probe, source, always):
    (code,) = functions(source)
    assert probe.sets_always(code, "x") == always


def test_self_of_another_class(probe):
    source = "def run(self, other):\n self.x = f(self.x)\n"
    assert told(probe, ATTRIBUTE_OF, source) == (1, 1, 0)
    assert told(probe, ATTRIBUTE_OF, source, other_self=True) == (0, 0, 0)
    assert told(probe, ATTRIBUTE_OF, source + " other.x.add_()\n", other_self=True) == READS


@pytest.mark.parametrize("body, expected", [
    ("global x\n x = f()\n g(x)", SETS),
    ("global x\n x = f(x)", (1, 1, 0)),
    ("global x\n x += f()", (1, 1, 0)),
    ("global x\n x = f()\n for i in t:\n  x = f(x)", (1, 1, 1)),
    ("global x\n if t: x = f()\n g(x)", (1, 1, 0)),
    ("g(x)", READS),
    ("x = f()\n g(x)", (0, 0, 0)),
    ("module.x = f()\n module.x = f(module.x)", SETS),
    ("module.x = f(module.x)", (1, 1, 0)),
    ("s.x = f(s.x)", (0, 0, 0)),
])
def test_a_variable_of_a_module(probe, body, expected):
    assert told(probe, VARIABLE, f"def run(s, t):\n {body}\n") == expected


@pytest.mark.parametrize("source, expected", [
    ("for i in t:\n x = f()\n g(x)\ng(x)", REPEATS),
    ("x = 0\nfor i in t:\n x = f(x)", (1, 1, 1)),
    ("x = 0\nfor i in t: g(x)", SETS),
])
def test_a_module(probe, source, expected):
    assert told(probe, VARIABLE, source) == expected


@pytest.mark.parametrize("body, expected", [
    ("s['x'] = f()\n g(s['x'])", SETS),
    ("s['x'] = f(s['x'])", (1, 1, 0)),
    ("s['x'] += f()", READS),
    ("s['x'] = f()\n t['x'] = f(t['x'])", (1, 1, 0)),
    ("s.t['x'] = f()\n g(s.t['x'])", SETS),
    ("s = {'x': f()}\n for i in t: s['x'] = f()", REPEATS),
    ("s['x'] = f(s.get('x'))", (1, 1, 0)),
    ("if 'x' in s: g()\n s['x'] = f()", SETS),
    ("s['x'] = f()\n log('x', s['x'])", SETS),
    ("s['y'] = f(s.x)", (0, 0, 0)),
])
def test_an_item(probe, body, expected):
    assert told(probe, ITEM_OF, f"def run(s, t):\n {body}\n") == expected


def test_more_than_is_followed(probe):
    ifs = "".join(f" if t == {i}: g()\n" for i in range(40))
    assert told(probe, ATTRIBUTE_OF, "def run(s, t):\n s.x = f()\n" + ifs + " g(s.x)\n") == SETS
    nested = "".join(" " * (i + 1) + f"if t == {i}:\n" for i in range(18))
    deep = "".join(" " * (i + 1) + "while t:\n" for i in range(18)) + " " * 19 + "s.x = f()\n"
    assert told(probe, ATTRIBUTE_OF, "def run(s, t):\n" + nested + " " * 19 + "s.x = f()\n") == SETS
    assert told(probe, ATTRIBUTE_OF, "def run(s, t):\n" + deep) == REPEATS
    many = "".join(f" s.x = f({i})\n" for i in range(40))
    assert told(probe, ATTRIBUTE_OF, "def run(s, t):\n" + many)[0] == 1
