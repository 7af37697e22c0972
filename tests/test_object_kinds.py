# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What objects and their types are."""

import collections
import dataclasses
import functools
import gc
import importlib
import io
import itertools
import operator
import sys
import threading
import types
import weakref

import pytest

from objects_zoo import *  # noqa: F403


DESCRIBED = {
    "dict": (lambda: {1: 2}, DICT, "dict of 1"),
    "list": (lambda: [1, 2, 3], LIST, "list of 3"),
    "tuple": (lambda: ([],), TUPLE, "tuple of 1"),
    "set": (lambda: {1}, SET, "set of 1"),
    "frozenset": (lambda: frozenset([1]), SET, "frozenset of 1"),
    "ordered dict": (collections.OrderedDict, DICT,
                     "collections.OrderedDict"),
    "default dict": (lambda: collections.defaultdict(list), DICT,
                     "collections.defaultdict"),
    "dict subclass": (DictNode, OBJECT, "objects_zoo.DictNode"),
    "instance": (Node, OBJECT, "objects_zoo.Node"),
    "function": (lambda: closure(1), FUNCTION, "function inner"),
    "lambda": (lambda: (lambda: 0), FUNCTION, "function <lambda>"),
    "builtin function": (lambda: len, BUILTIN_METHOD, "function len"),
    "method": (lambda: Node().method, BOUND_METHOD, "method method"),
    "builtin method": (lambda: [].append, BUILTIN_METHOD, "method append"),
    "cell": (lambda: types.CellType(1), CELL, "cell"),
    "traceback": (lambda: caught(1).__traceback__, TRACEBACK, "traceback"),
    "exception": (lambda: Error(1), EXCEPTION, "objects_zoo.Error"),
    "builtin exception": (lambda: ValueError(1), EXCEPTION, "ValueError"),
    "partial": (lambda: functools.partial(print), PARTIAL,
                "functools.partial"),
    "module": (of_module, MODULE, "module a_module"),
    "class": (lambda: Node, TYPE, "class Node"),
    "builtin class": (lambda: int, TYPE, "class int"),
    "weakref": (lambda: weakref.ref(Node), WEAKREF, None),
    "text": (lambda: "a text", OBJECT, "'a text'"),
    "long text": (lambda: "x" * 100, OBJECT,
                  "'" + "x" * 12 + "..." + "x" * 28 + "'"),
    "int": (lambda: 5, OBJECT, "5"),
    "None": (lambda: None, OBJECT, "None"),
    "bytes": (lambda: b"ab", OBJECT, "b'ab'"),
}
if not PUBLIC_ONLY:
    DESCRIBED |= {
        "generator": (lambda: generator(1), GENERATOR, "generator generator"),
        "async generator": (lambda: async_generator(1), ASYNC_GENERATOR,
                            "async generator async_generator"),
        "coroutine": (lambda: started(coroutine(1)), COROUTINE,
                      "coroutine coroutine"),
    }


@pytest.mark.parametrize("case", DESCRIBED)
def test_an_object_is_described(probe, case):
    make, species, label = DESCRIBED[case]
    made = make()
    probe.show_texts(True)
    told = probe.describe(made)
    assert told["species"] == species
    assert label is None or told["label"] == label
    assert 0 < told["bytes"] < 1 << 20


def test_frames_and_generators_have_their_line_and_code(probe):
    frame = returned_frame(1)
    told = probe.describe(frame)
    line = frame.f_lineno
    assert told["species"] == FRAME
    assert told["line"] == line
    assert told["code"] == "returned_frame"
    assert told["label"] == f"frame objects_zoo.py:{line} in returned_frame"
    told = probe.describe(caught(1).__traceback__)
    assert told["code"] == "caught"
    assert told["line"] == caught.__code__.co_firstlineno + 2
    if not PUBLIC_ONLY:
        first = generator.__code__.co_firstlineno
        assert probe.describe(generator(1))["line"] == first
        told = probe.describe(started(generator(1)))
        assert (told["line"], told["code"]) == (first + 2, "generator")
    told = probe.describe(closure(1))
    assert told["line"] == closure.__code__.co_firstlineno + 1
    assert told["code"] == "closure.<locals>.inner"


def test_finalizers_are_those_written_in_python(probe):
    class WithDel:
        def __del__(self):
            pass

    class Child(WithDel):
        pass

    class Late:
        pass

    told = [probe.describe(thing)["has_finalizer"]
            for thing in (WithDel(), Child(), Node(), Late(), generator(1))]
    assert told == [True, True, False, False, False]
    Late.__del__ = lambda self: None
    assert probe.describe(Late())["has_finalizer"]


# ---- types


def test_types_have_names_and_methods(probe):
    told = probe.type(Node)
    assert told["name"] == "objects_zoo.Node"
    assert told["module"] == "objects_zoo"
    assert not told["library"]
    assert told["methods"] == [
        "Node.method", "Node.static", "Node.of_class", "Node.computed"]
    assert probe.type(int)["name"] == "int"
    assert probe.type(int)["library"]
    assert probe.type(collections.OrderedDict)["name"] == (
        "collections.OrderedDict")
    assert probe.type(threading.Thread)["library"]
    assert probe.type(dataclasses.make_dataclass("D", ["a"]))["name"].endswith(
        ".D")
    main = type("Main", (), {"__module__": "__main__"})
    assert probe.type(main)["name"] == "Main"


def test_types_built_into_the_interpreter_are_a_librarys(probe):
    kinds = [kind for kind in (functools.partial, operator.itemgetter,
                              itertools.count, io.StringIO, type(threading.Lock()))
             if not hasattr(importlib.import_module(kind.__module__), "__file__")]
    assert kinds and all(probe.type(kind)["library"] for kind in kinds), kinds


def test_types_of_modules_that_a_program_makes_are_its_own(probe, monkeypatch):
    monkeypatch.setitem(sys.modules, "made_here", types.ModuleType("made_here"))
    assert not probe.type(type("Own", (), {"__module__": "made_here"}))["library"]


def test_methods_of_the_type_stand_before_those_of_its_bases(probe):
    class Base:
        def shared(self):
            pass

        def only_base(self):
            pass

    class Child(Base):
        def shared(self):
            pass

    names = [name.rpartition("<locals>.")[2]
             for name in probe.type(Child)["methods"]]
    assert names == ["Child.shared", "Base.shared", "Base.only_base"]
    many = type("Many", (), {f"m{i}": (lambda self: i) for i in range(400)})
    assert len(probe.type(many)["methods"]) <= 256


def test_methods_are_found_behind_their_decorators(probe):
    def decorated(function):
        @functools.wraps(function)
        def wrapper(self):
            return function(self)
        return wrapper

    class Wrapped:
        @decorated
        @decorated
        def twice(self):
            pass

        @functools.cached_property
        def cached(self):
            pass

        @functools.lru_cache
        def remembered(self):
            pass

        @property
        def read(self):
            pass

        @read.setter
        def read(self, value):
            pass

        @classmethod
        @decorated
        def of_class(cls):
            pass

        plain, number, nested = len, 3, Node

    names = [name.rpartition("<locals>.")[2]
             for name in probe.type(Wrapped)["methods"]]
    if not PUBLIC_ONLY:
        assert "Wrapped.cached" in names
        names.remove("Wrapped.cached")
    assert names == ["wrapper", "wrapper", "Wrapped.twice",
                     "Wrapped.remembered", "Wrapped.read", "Wrapped.read",
                     "wrapper", "Wrapped.of_class"]


def test_a_changed_type_is_another_record(probe):
    class Changing:
        def first(self):
            pass

    before = probe.type(Changing)
    Changing().first()
    assert probe.type(Changing)["methods"] == before["methods"]
    Changing.second = Node.method
    assert len(probe.type(Changing)["methods"]) == 2
    Changing.__qualname__ = "Renamed"
    assert probe.type(Changing)["name"].endswith(".Renamed")


def test_types_at_one_address_are_told_apart(probe):
    for i in range(300):
        made = type(f"Made{i}", (), {})
        assert probe.type(made)["name"].endswith(f".Made{i}")
        del made
        if i % 10 == 0:
            gc.collect()
