# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What code objects remember: compared with what dis shows."""

import dis
import importlib
import itertools
import os
import random
import sys
import types

import pytest

from objects_zoo import *  # noqa: F403


CODE_MODULES = ["json.decoder", "argparse", "dataclasses", "asyncio.tasks",
                "collections", "typing", "threading", "ast", "inspect",
                "tarfile", "enum", "textwrap", "shutil", "logging"]


def codes_of(module):
    with open(module.__file__, encoding="utf-8") as file:
        todo = [compile(file.read(), module.__file__, "exec")]
    while todo:
        code = todo.pop()
        yield code
        todo.extend(const for const in code.co_consts
                    if isinstance(const, types.CodeType))


UNKNOWN = ("constant", None)
# What takes something off the stack and leaves one result, which nothing is known of.
TAKING = ("BUILD_LIST", "BUILD_MAP", "BUILD_SET", "BINARY_OP", "UNARY_NEGATIVE", "CONVERT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC",
          "FORMAT_VALUE", "BUILD_STRING", "BUILD_TUPLE", "CALL", "CALL_KW", "BUILD_SLICE", "BINARY_SLICE")
# What takes something and leaves what lay below.
ENDING = ("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL", "STORE_FAST_STORE_FAST", "STORE_ATTR",
          "STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR")


def is_slice(item):
    return "slice" in item or type(item.get("constant")) is slice


def pushed(instruction, code):
    """The names or constants an instruction pushes, last first."""
    name, value = instruction.opname, instruction.argval
    if name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
        return [("name", value[1]), ("name", value[0])]
    if name == "STORE_FAST_LOAD_FAST":
        return [("name", value[1])]
    if name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW",
                "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_NAME", "LOAD_GLOBAL"):
        return [("name", value)]
    if name == "LOAD_CONST":
        return [("constant", value)]
    if name in ("LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "PUSH_NULL", "BUILD_SLICE", "BINARY_SLICE"):
        return [UNKNOWN]
    if name == "LOAD_ATTR" and not (instruction.arg & 1 and
                                    sys.version_info >= (3, 12)):
        return [("attribute", value)]
    return None


def is_item(instruction):
    return instruction.opname == "BINARY_SUBSCR" or (
        instruction.opname == "BINARY_OP" and instruction.argrepr == "[]")


def text_or_none(value):
    return value if type(value) is str else ""


def owner_of(item):
    """Of a call or an item: the name x, or the last one of y.x or y['x']."""
    return item.get("name", item.get("attribute", item.get("item", ("", ""))[0]))


def within_of(item):
    return item.get("item", ("", ""))[1]


class Method(str):
    """Its name, and what it is bound to."""

    of = ""


def method(name, bound):
    found = Method(name)
    found.of = owner_of(bound)
    return ("called", found)


def called_in(recent, arguments):
    """The name of a call's function, which lies below its arguments."""
    named = [owner_of(dict([item])) if item[1] is not None else "" for item in recent]
    below = [named[i] if i < len(named) else "" for i in (arguments, arguments + 1)]
    if arguments + 1 >= 8:
        return ""
    called = recent[arguments][1] if arguments < len(recent) and recent[arguments][0] == "called" else ""
    return called or below[0] or below[1]


def attribute_set(recent, arguments):
    """What setattr(x, "name", y) or x.__setattr__("name", y) sets, of whom; a call of setattr() with another name; None."""
    function = called_in(recent, arguments)
    if (function, arguments) not in (("setattr", 3), ("__setattr__", 2), ("__setattr__", 3)):
        return None
    first, key = recent[arguments - 1], recent[1]
    owner = first[1] if arguments == 3 and first[0] == "name" else ""
    if key[0] == "constant" and type(key[1]) is str:
        return STORE_ATTRIBUTE, key[1], owner
    return (STORE_CALL, function, owner) if function == "setattr" else None


def stores_by_dis(code):
    return [store[:4] for store in all_stores_by_dis(code)]


def comprehensions_of(code):
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)
            and constant.co_name in ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")]


def all_stores_by_dis(code):
    """Those of comprehensions stand at the end, without their variables."""
    return own_stores_by_dis(code) + [
        store for inner in comprehensions_of(code) for store in own_stores_by_dis(inner) if store[0] != STORE_LOCAL]


def own_stores_by_dis(code):
    """What cm_store should be, from dis alone; with the container's name."""
    stores, line = [], 0
    recent = []  # last first
    instructions = list(dis.get_instructions(code))
    for at, instruction in enumerate(instructions):
        op, value = instruction.opname, instruction.argval
        if op in ("EXTENDED_ARG", "CACHE", "NOP", "RESUME", "NOT_TAKEN", "PRECALL", "KW_NAMES"):
            continue
        line = instruction.positions.lineno or 0
        loaded = pushed(instruction, code)
        top = dict([recent[0]]) if recent else {}
        below = dict([recent[1]]) if len(recent) > 1 else {}
        following = instructions[at + 1] if at + 1 < len(instructions) else None
        deleted = following is not None and following.opname.startswith(
            "DELETE_") and following.argval == value
        if op in ("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL"):
            kind = {"STORE_FAST": STORE_LOCAL, "STORE_DEREF": STORE_CELL}.get(
                op, STORE_GLOBAL)
            if not deleted:
                stores.append((kind, value, "", line, ""))
        elif op == "STORE_FAST_LOAD_FAST":
            stores.append((STORE_LOCAL, value[0], "", line, ""))
        elif op == "STORE_FAST_STORE_FAST":
            stores.append((STORE_LOCAL, value[0], "", line, ""))
            if not (following.opname == "DELETE_FAST"
                    and following.argval == value[1]):
                stores.append((STORE_LOCAL, value[1], "", line, ""))
        elif op == "STORE_ATTR":
            stores.append((STORE_ATTRIBUTE, value, top.get("name", ""), line, ""))
        elif op == "STORE_SUBSCR":
            key = top.get("constant", "")
            if not is_slice(top):
                stores.append((STORE_ITEM, key if type(key) is str else "",
                               owner_of(below), line, within_of(below)))
        elif op == "MAKE_FUNCTION":
            stores.append((STORE_FUNCTION, top["constant"].co_qualname, "",
                           line, ""))
        elif op == "LOAD_METHOD":
            stores.append((STORE_CALL, value, owner_of(top), line, within_of(top)))
        elif op == "LOAD_ATTR" and instruction.arg & 1 and (
                sys.version_info >= (3, 12)):
            stores.append((STORE_CALL, value, owner_of(top), line, within_of(top)))
        elif op == "LOAD_SUPER_ATTR" and instruction.arg & 1:
            stores.append((STORE_CALL, value, "", line, ""))
        elif op == "CALL" and (attribute := attribute_set(recent, instruction.arg)) is not None:
            if stores and stores[-1][:2] == (STORE_CALL, "__setattr__") and attribute[0] == STORE_ATTRIBUTE:
                del stores[-1]
            stores.append((*attribute, line, ""))
        taken = 1 - dis.stack_effect(instruction.opcode, instruction.arg)
        if is_item(instruction):
            item = ("item", (text_or_none(top.get("constant")), owner_of(below)))
            recent = [UNKNOWN if is_slice(top) else item, *recent[2:]]
        elif op == "COPY":
            recent = [recent[instruction.arg - 1] if instruction.arg <= len(recent) else UNKNOWN, *recent]
        elif op == "SWAP":
            recent = (recent + [UNKNOWN] * 8)[:8]
            recent[0], recent[instruction.arg - 1] = recent[instruction.arg - 1], recent[0]
        elif op in ENDING:
            recent = recent[taken - 1:]
        elif op == "LOAD_METHOD" or (op == "LOAD_ATTR" and loaded is None):
            recent = [method(value, top), UNKNOWN, *recent[1:]]
        elif op == "LOAD_SUPER_ATTR":
            recent = [("called", value)] if instruction.arg & 1 else []
        elif op in TAKING:  # of a call, PRECALL has taken the arguments on 3.11
            left = ("slice", None) if op == "BUILD_SLICE" else UNKNOWN
            if op == "CALL" and instruction.arg and called_in(recent, instruction.arg) == "vars":
                left = ("attribute", "vars")
            if op == "CALL" and instruction.arg == 2 and isinstance(dict(recent[2:3]).get("called"), Method) \
                    and called_in(recent, 2) == "setdefault":
                left = ("item", (text_or_none(dict(recent[1:2]).get("constant")), recent[2][1].of))
            recent = [left, *recent[instruction.arg + 2 if op == "CALL" else taken:]]
        elif loaded is None:
            recent = []
        elif op == "STORE_FAST_LOAD_FAST":
            recent = loaded + recent[1:]
        elif op == "LOAD_ATTR":
            recent = loaded + recent[1:]
        else:
            null = op == "LOAD_GLOBAL" and instruction.arg & 1
            recent = loaded + [UNKNOWN] * null + recent
        recent = recent[:8]
    return stores


def made_in(told, column):
    """Of what a code object stores, without what removes or measures: tests of their own have that."""
    mine = [store[0] < STORE_REMOVE for store in told["stores"]]
    return list(itertools.compress(told[column], mine))


@pytest.mark.parametrize("name", CODE_MODULES)
def test_stores_are_those_that_dis_shows(probe, name):
    for code in codes_of(importlib.import_module(name)):
        told = probe.code(code)
        assert told["name"] == code.co_name
        assert told["qualified_name"] == code.co_qualname
        assert told["filename"] == code.co_filename
        assert told["first_line"] == code.co_firstlineno
        assert told["library"]
        assert made_in(told, "stores") == stores_by_dis(code)[:4096], code
        assert made_in(told, "within") == [store[4] for store in all_stores_by_dis(code)][:4096], code


def in_loops(code):
    """Lines within a loop, from dis alone: what a backward jump spans, but out of a handler (3.12 on)."""
    instructions = list(dis.get_instructions(code))
    handlers = min((instruction.offset for instruction in instructions
                    if instruction.opname == "PUSH_EXC_INFO"), default=1 << 30)
    spans = [(instruction.argval, instruction.offset) for instruction in instructions
             if "BACKWARD" in instruction.opname and "JUMP" in instruction.opname
             and (sys.version_info < (3, 12) or not instruction.argval < handlers <= instruction.offset)]
    return {instruction.positions.lineno for instruction in instructions
            for first, last in spans if first <= instruction.offset <= last}


@pytest.mark.parametrize("name", CODE_MODULES)
def test_stores_in_loops_are_those_that_dis_shows(probe, name):
    """By lines: of those that stand in a loop and out of it nothing is said."""
    seen = 0
    for code in codes_of(importlib.import_module(name)):
        told, inside = probe.code(code), in_loops(code)
        outside = {instruction.positions.lineno for instruction in dis.get_instructions(code)} - inside
        outside -= {instruction.positions.lineno for inner in comprehensions_of(code)
                    for instruction in dis.get_instructions(inner)}
        for (_, _, _, line), (_, _, repeated) in zip(told["stores"], told["marks"]):
            assert not (repeated and line in outside), (code, line)
            seen += repeated
    assert seen > 0


def test_new_containers_constants_and_loops(probe):
    source = """def f(self, rows):
 made = []
 self.table = {}
 self.last = None
 for row in rows:
  batch = []
  self.seen = {}
  made += [row]
  batch.append(row)
  while row:
   row = self.next(row)
  self.size = len(made)
 after = [rows]
 after.clear()
"""
    told = probe.code(function_of(source).__code__)
    marks = {(name, line): mark
             for (_, name, _, line), mark in zip(told["stores"], told["marks"])}
    assert marks == {
        ("made", 2): (0, 1, 0), ("table", 3): (0, 1, 0), ("last", 4): (1, 0, 0),
        ("row", 5): (0, 0, 1), ("batch", 6): (0, 1, 1), ("seen", 7): (0, 1, 1),
        ("made", 8): (0, 0, 1), ("append", 9): (0, 0, 1), ("next", 11): (0, 0, 1),
        ("row", 11): (0, 0, 1), ("size", 12): (0, 0, 1), ("after", 13): (0, 0, 0),
        ("clear", 14): (0, 0, 0)}


def test_dicts_of_new_containers(probe):
    source = """def f(self, rows):
 log = {"loss": [], "steps": []}
 self.seen = {"rows": {}, "count": 0}
 pairs = {"rows": rows, "loss": []}
 sizes = {"rows": 1, "loss": 2}
 lists = [[], []]
 many = {"a": [], "b": [], "c": [], "d": [], "e": [], "f": [], "g": [], "h": [], "i": []}
"""
    told = probe.code(function_of(source).__code__)
    empty = {name for (_, name, _, _), (_, empty, _) in zip(told["stores"], told["marks"])
             if empty}
    assert empty == {"log", "seen"}


def test_constants_of_one_assignment(probe):
    source = """def f(self, x):
 size, failed = 4, None
 self.a, self.b, [self.c] = None, x, [x]
 first, *rest = 1, 2
"""
    told = probe.code(function_of(source).__code__)
    constant = {name: mark[0] for (_, name, _, _), mark in zip(told["stores"], told["marks"])}
    assert constant["size"] and constant["failed"]
    assert not (constant["b"] or constant["c"] or constant["rest"])


def test_constants_among_others_of_one_assignment(probe):
    source = """def f(self, x, y):
 self.a, self.b = x, None
 self.c, self.d, self.e = x, None, None
 p, q = None, x
 self.rows, self.f = [], x
 self.g, self.h = (y or None), x
 self.i, self.j = x, (None if y else 3)
 self.k, self.l = (None if y else 3), x
"""
    told = probe.code(function_of(source).__code__)
    marks = {name: mark for (_, name, _, _), mark in zip(told["stores"], told["marks"])}
    assert {name for name, (constant, _, _) in marks.items() if constant} == {"b", "d", "e", "p"}
    assert {name for name, (_, empty, _) in marks.items() if empty} == {"rows"}


def test_handlers_are_no_loops(probe):
    source = """def f(path, rows):
 with open(path) as file:
  text = file.read()
 try:
  import fast
 except ImportError:
  fast = None
 made = []
 for row in rows:
  try:
   done = fast(row)
  except ValueError:
   continue
  made.append(done)
 one, two = [], []
 return made or []
"""
    told = probe.code(function_of(source).__code__)
    repeated = {(name, line) for (_, name, _, line), (_, _, repeated)
                in zip(told["stores"], told["marks"]) if repeated}
    assert repeated == {("row", 9), ("done", 11), ("append", 14)}
    empty = {(name, line) for (_, name, _, line), (_, empty, _)
             in zip(told["stores"], told["marks"]) if empty}
    assert ("made", 8) in empty and len(empty) <= 3, empty


def test_new_containers_of_a_module(probe):
    code = compile("for epoch in range(3):\n outputs = []\n last = None\n", "<module>", "exec")
    told = probe.code(code)
    assert {(name, mark) for (_, name, _, _), mark in zip(told["stores"], told["marks"])} == {
        ("epoch", (0, 0, 1)), ("outputs", (0, 1, 1)), ("last", (1, 0, 1))}


def test_what_is_made_where_it_is_stored(probe):
    source = """def f(self, other):
 self.a = other
 self.b = Node(other)
 self.c = [other]
 self.d = self.e = None
 self.g = other.rows
 self.h = self.i = self.make(self)
 self.j = other.rows[0]
"""
    told = probe.code(function_of(source).__code__)
    assert {name: (made, constant) for (kind, name, _, _), (constant, _, _), (made, _)
            in zip(told["stores"], told["marks"], told["values"]) if kind == STORE_ATTRIBUTE} == {
        "a": (0, 0), "b": (1, 0), "c": (1, 0), "d": (0, 1), "e": (0, 1), "g": (0, 0),
        "h": (1, 0), "i": (1, 0), "j": (0, 0)}


def test_attributes_that_calls_set(probe):
    source = """class C:
 def f(self, name, other):
  setattr(self, 'a', other)
  object.__setattr__(self, 'b', other)
  super().__setattr__('c', other)
  self.__setattr__('d', None)
  setattr(self.part, 'e', Node(self))
  setattr(self, name, other)
  object.__setattr__(self, name, other)
  vars(self)['h'] = other
  vars(self).update(i=other)
  self.__dict__.setdefault('j', other)
  getattr(self, 'k', other)
"""
    namespace = {}
    exec(compile(source, "<calls>", "exec"), namespace)
    told = probe.code(namespace["C"].f.__code__)
    assert told["stores"] == [
        (STORE_ATTRIBUTE, "a", "self", 3), (STORE_ATTRIBUTE, "b", "self", 4), (STORE_ATTRIBUTE, "c", "", 5),
        (STORE_ATTRIBUTE, "d", "", 6), (STORE_ATTRIBUTE, "e", "", 7), (STORE_CALL, "setattr", "self", 8),
        (STORE_CALL, "__setattr__", "object", 9), (STORE_ITEM, "h", "vars", 10), (STORE_CALL, "update", "vars", 11),
        (STORE_CALL, "setdefault", "__dict__", 12)]
    constant = {name: mark[0] for (_, name, _, _), mark in zip(told["stores"], told["marks"])}
    assert constant["d"] and not constant["a"]


def test_comprehensions_belong_to_who_makes_them(probe):
    source = """def f(self, model):
 self.handles = [m.register_forward_hook(self.hook) for m in model]
 any(self.seen.add(m) for m in model)
 return [lambda: self.g(m) for m in model]
"""
    told = probe.code(function_of(source).__code__)
    calls = [(name, owner, line) for kind, name, owner, line in told["stores"] if kind == STORE_CALL]
    assert ("register_forward_hook", "m", 2) in calls and ("add", "seen", 3) in calls
    assert not any(name == "g" for name, _, _ in calls)
    if sys.version_info < (3, 12):
        assert not any(kind == STORE_LOCAL for kind, _, _, _ in told["stores"])


def test_what_an_item_is_taken_from(probe):
    source = """def f(self, i):
 self.history['loss'].append(i)
 logs[i].append(i)
 logs['a']['b'] = i
 self.logs[i]['c'].d = i
 table(i)[0].append(i)
"""
    told = probe.code(function_of(source).__code__)
    assert list(zip(told["stores"], told["within"])) == [
        ((STORE_CALL, "append", "loss", 2), "history"),
        ((STORE_READ, "", "logs", 3), ""),
        ((STORE_CALL, "append", "", 3), "logs"),
        ((STORE_ITEM, "b", "a", 4), "logs"),
        ((STORE_READ, "", "logs", 5), ""),
        ((STORE_ATTRIBUTE, "d", "", 5), ""),
        ((STORE_CALL, "append", "", 6), "")]


def test_what_is_filled_under_a_key_that_is_computed(probe):
    keys = ["f'req-{i!r:>4}{name}'", "i + 1", "-i", "str(i)", "name.lower()", "(i, name)",
            "table[0]", "name.x", "hash(name, key=i)", "f'{i}/{str(name + 1)}'"]
    source = "def f(self, y, i, name, table):\n" + "".join(
        f" self.audit[{key}] = y\n self.logs[{key}].append(y)\n" for key in keys)
    told = probe.code(function_of(source).__code__)
    found = {(store, within) for store, within in zip(told["stores"], told["within"])}
    for at, _ in enumerate(keys):
        assert ((STORE_ITEM, "", "audit", 2 * at + 2), "") in found, keys[at]
        assert ((STORE_CALL, "append", "", 2 * at + 3), "logs") in found, keys[at]


def test_stores_are_read_from_code_that_has_run(probe):
    code = argparse_main.__code__
    fresh = probe.code(code)["stores"]
    for _ in range(100):
        argparse_main()
    module = importlib.import_module("argparse")
    hot = [value.__code__
           for owner in (module.ArgumentParser, module._ActionsContainer,
                         module.Namespace, module._ArgumentGroup)
           for value in vars(owner).values()
           if isinstance(value, types.FunctionType)]
    assert probe.renew()
    assert probe.code(code)["stores"] == fresh != []
    for code in hot:
        assert made_in(probe.code(code), "stores") == stores_by_dis(code)


def argparse_main():
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--x", type=int)
    return parser.parse_args(["--x", "1"]).x


def test_reading_code_caches_nothing_in_it(probe):
    code = compile("x = 1\ny.z = x\n", "<a>", "exec")
    before = sys.getsizeof(code), sys.getrefcount(code)
    blocks = sys.getallocatedblocks()
    for _ in range(10):
        probe.code(code)
    assert sys.getallocatedblocks() - blocks < 5
    assert (sys.getsizeof(code), sys.getrefcount(code)) == before


def test_more_names_than_one_byte_counts(probe):
    source = "def f(self):\n" + "".join(
        f" self.a{i} = b{i}\n" for i in range(700))
    stores = probe.code(function_of(source).__code__)["stores"]
    assert stores == [(STORE_ATTRIBUTE, f"a{i}", "self", i + 2)
                      for i in range(700)]
    source = "def f(self):\n" + " self.a = 1\n" * 5000
    told = probe.code(function_of(source).__code__)
    assert len(told["stores"]) + len(told["own"]) == 4096


def test_code_under_a_tracer_or_monitor(probe):
    function = function_of("def f(o):\n o.x = 1\n y = [o]\n o.z = y\n return y\n")
    sys.settrace(lambda *_: lambda *_: None)
    try:
        function(Node())
        told = probe.code(function.__code__)["stores"]
    finally:
        sys.settrace(None)
    whole = [(STORE_ATTRIBUTE, "x", "o", 2), (STORE_LOCAL, "y", "", 3),
             (STORE_ATTRIBUTE, "z", "o", 4)]
    assert told == whole[:len(told)]


def test_code_at_one_address_is_told_apart(probe):
    for i in range(500):
        code = compile(f"x{i} = 1", f"file{i}.py", "exec")
        told = probe.code(code)
        assert told["filename"] == f"file{i}.py"
        assert told["stores"] == [(STORE_GLOBAL, f"x{i}", "", 1)]
        del code


@pytest.mark.parametrize("filename, library", [
    ("/tmp/torchinductor_me/g2/cg2if7v5bvygjwiefjcklww73tsagxfkh6c5wp5cembljlyo7dhy.py", True),
    ("/home/me/g3/cg2if7v5bvygjwiefjcklww73tsagxfkh6c5wp5cembljlyo7dhy.py", False),
    ("/home/me/cg2if7v5bvygjwiefjcklww73tsagxfkh6c5wp5cembljlyo7dhy.py", False),
    ("/home/me/ra/train.py", False),
    ("<eval_with_key>.12", True),
    (os.__file__, True),
    ("/home/me/venv/lib/python3.12/site-packages/torch/nn/__init__.py", True),
    ("/usr/lib/python3/dist-packages/apt.py", True),
    ("<frozen importlib._bootstrap>", True),
    ("/home/me/train.py", False),
    ("train.py", False),
    ("<stdin>", False),
    ("<ipython-input-1>", False),
    (os.path.dirname(os.__file__) + "x/train.py", False),
])
def test_library_code_is_known_by_its_file(probe, filename, library):
    code = compile("x = 1", filename, "exec")
    assert probe.code(code)["library"] == library


@pytest.mark.parametrize("source", [
    "def f(self, x):\n self.{}.append(x)\n",      # an attribute
    "def f({}, x):\n {}.append(x)\n",              # a variable
    "def f(self, x):\n self['{}'].append(x)\n",   # a constant
])
def test_code_written_at_run_time_is_not_taken_for_what_lay_there(probe, source):
    """One file name, one shape: one in 1,500 lies where another one lay, parts and all."""
    places, again = set(), 0
    for turn in range(40):
        names = [f"rows{turn}_{i}" for i in range(60)]
        codes = [function_of(source.replace("{}", name)).__code__ for name in names]
        again += sum(id(code) in places for code in codes)
        places.update(map(id, codes))
        for name, code in zip(names, codes):
            assert [owner for kind, _, owner, _ in probe.code(code)["stores"] if kind == STORE_CALL] == [name]
        random.Random(turn).shuffle(codes)  # so that they die in any order, as a program's do
        codes.clear()
    assert again > 100


def test_values_of_a_tuple_that_is_taken_apart_at_once(probe):
    source = """def f(self, owner, v):
 self.owner, self.v, self.next, self.prev = owner, v, None, None
 self.a, self.b, self.c, self.d = v
 self.rows, self.kept, n, k = [], make(), owner, None
"""
    told = probe.code(function_of(source).__code__)
    constants = [name for (_, name, *_), (constant, *_) in zip(told["stores"], told["marks"]) if constant]
    assert constants == ["next", "prev", "k"]
    assert [name for (_, name, *_), (_, empty, _) in zip(told["stores"], told["marks"]) if empty] == ["rows"]
    assert told["marked"]["by"] == {4: "make"}
