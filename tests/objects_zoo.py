# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the tests of the object reader (pyext/objects/objects.h) read.

CUMEM_OBJECTS_PROBE names a folder with a module built already
(tests/objects_probe/build.py), else one is built here.
"""

import asyncio
import atexit
import collections
import ctypes
import dataclasses
import functools
import importlib.util
import itertools
import os
import pathlib
import shutil
import sys
import sysconfig
import tempfile
import threading
import types
import weakref

import pytest

# No layout is proven: free-threaded, or built that way to be tested.
PUBLIC_ONLY = bool(sysconfig.get_config_var("Py_GIL_DISABLED")
                   or os.environ.get("CUMEM_OBJECTS_PUBLIC"))

(OBJECT, DICT, LIST, TUPLE, SET, FUNCTION, BOUND_METHOD, BUILTIN_METHOD, CELL,
 FRAME, TRACEBACK, EXCEPTION, GENERATOR, COROUTINE, ASYNC_GENERATOR, PARTIAL,
 MODULE, TYPE, TENSOR, STORAGE, GRAD_FN, WEAKREF) = range(22)

(REFERENCE, ATTRIBUTE, INSTANCE_DICT, KEY, VALUE, ITEM, ELEMENT, CLOSURE,
 CLOSURE_CELL, CELL_CONTENTS, LOCAL, BOUND_SELF, BOUND_FUNCTION, DEFAULT,
 CLASS, EXCEPTION_LINK, TB_FRAME, TB_NEXT, F_BACK, PARTIAL_FUNC, PARTIAL_ARG,
 GLOBALS, AUTOGRAD, HOOK, WEAKREF_CALLBACK) = range(25)

(STORE_ATTRIBUTE, STORE_LOCAL, STORE_CELL, STORE_GLOBAL, STORE_ITEM,
 STORE_FUNCTION, STORE_CALL, STORE_REMOVE, STORE_MEASURE, STORE_ASK,
 STORE_READ, STORE_HAND, STORE_PARAMETER, STORE_ALIAS, STORE_RETURN, STORE_COMPARE) = range(1, 17)


@functools.cache
def built_folder():
    folder = os.environ.get("CUMEM_OBJECTS_PROBE")
    if folder is None:
        path = pathlib.Path(__file__).parent / "objects_probe" / "build.py"
        spec = importlib.util.spec_from_file_location("build_probe", path)
        builder = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(builder)
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        builder.build(sys.executable, folder)
    return folder


@pytest.fixture
def folder():
    return built_folder()


def import_probe(folder):
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("objects_probe")


@pytest.fixture
def probe(folder):
    return import_probe(folder)


class Node:
    def method(self):
        return self

    @staticmethod
    def static():
        pass

    @classmethod
    def of_class(cls):
        pass

    @property
    def computed(self):
        return 1


class Slotted:
    __slots__ = ("first", "second", "__weakref__")


class SlottedChild(Slotted):
    __slots__ = ("third",)


class SlottedWithDict(Slotted):
    pass


class ListNode(list):
    pass


class DictNode(dict):
    pass


class TupleNode(tuple):
    pass


class IntNode(int):
    pass


class Error(Exception):
    pass


Pair = collections.namedtuple("Pair", "left right")


def function_of(source):
    """The `f` that this source defines."""
    namespace = {}
    exec(compile(source, "<source>", "exec"), namespace)
    return namespace["f"]


FILES = itertools.count(10000)


def compile_in_its_file(source):
    """Code of the same names that lay there before (3.11) is told apart by the file's name."""
    return compile(source, f"/home/me/{next(FILES)}", "exec")


def in_its_file(source):
    namespace = {}
    exec(compile_in_its_file(source), namespace)
    return namespace


def node(**attributes):
    made = Node()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def alone(**attributes):
    """Of a class of its own: the keys that instances share have an end, and tests fill them."""
    made = type("Alone", (), {})()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def with_dict(**attributes):
    """A node whose dict has been made."""
    made = node(**attributes)
    made.__dict__
    return made


def generator(x, other=None):
    y = x
    yield y
    return other


def delegating(x):
    yield from generator(x)


async def coroutine(x):
    await Suspend()
    return x


class Suspend:
    def __await__(self):
        yield


async def outer_coroutine(x):
    await coroutine(x)


async def async_generator(x):
    yield x


def started(thing):
    if hasattr(thing, "send"):
        thing.send(None)
    else:
        with pytest.raises(StopIteration):
            thing.asend(None).send(None)
    return thing


def closure(x):
    def inner():
        return x
    return inner


def returned_frame(x):
    inner = closure(x)
    y = x
    return sys._getframe()


def frame_with_cell(x):
    def inner():
        return x
    return sys._getframe()


def caught(x):
    try:
        raise Error(x)
    except Error as error:
        return error


def edges(probe, thing, referent=None):
    if referent is None:
        return [(label, role) for _, label, role in probe.edges(thing)]
    return [(label, role) for _, label, role in probe.edges(thing, referent)]


MARK = ["mark"]


def function_with_everything():
    def function(a=MARK, *, b=MARK):
        return MARK
    function.extra = MARK
    return function


def of_module():
    module = types.ModuleType("a_module")
    module.x = MARK
    return module


def slotted(cls=Slotted):
    made = cls()
    made.second = MARK
    return made


def of_int():
    made = IntNode(1 << 100)
    made.x = MARK
    made.__dict__
    return made


def of_list():
    made = ListNode()
    made.x = MARK
    made.__dict__
    return made


def of_error():
    made = Error()
    made.x = MARK
    return made


def chained():
    try:
        try:
            raise Error(1)
        except Error:
            raise Error(2)
    except Error as error:
        return error


def caused():
    try:
        raise Error(1) from Error(2)
    except Error as error:
        return error


def caught_below():
    def raising():
        raise Error

    try:
        raising()
    except Error as error:
        return error


def below():
    def inner():
        return sys._getframe()
    return inner()


def with_frame(made):
    next(made)
    made.gi_frame
    return made


def tame_zoo():
    """One of everything that a traverse function can be found for."""
    cycle = node(x=1)
    cycle.me = cycle
    loop = asyncio.new_event_loop()
    loop.close()
    things = [
        cycle, with_dict(a=[1]), slotted(), slotted(SlottedChild),
        slotted(SlottedWithDict), of_int(), of_list(), of_error(), [1, [2]],
        {1: {2: 3}, "k": [1]}, (1, [2]), {1, (2, 3)}, frozenset([1, (2,)]),
        Pair([1], [2]), collections.OrderedDict(a=[1]), loop,
        collections.defaultdict(list, a=[1]), collections.deque([[1], [2]]),
        collections.Counter("ab"), collections.ChainMap({1: 2}),
        started(generator([1])), generator([1]), started(coroutine([1])),
        started(async_generator([1])), started(delegating([1])),
        started(outer_coroutine([1])), with_frame(generator([2])),
        returned_frame([1]), frame_with_cell([1]), closure([1]),
        function_with_everything(), of_module(), sys, os, types,
        node().method, [].append, MARK.__len__, len, print,
        functools.partial(print, [1], file=[2]), property(node),
        staticmethod(node), classmethod(node), weakref.ref(Node, node),
        weakref.proxy(cycle), weakref.WeakSet([Node]),
        weakref.WeakValueDictionary(), weakref.WeakKeyDictionary(),
        caught([1]), chained(), caused(), caught([1]).__traceback__,
        caught_below().__traceback__, Node, SlottedChild, Pair,
        dataclasses.make_dataclass("D", ["a"])([1]),
        types.MappingProxyType({1: [2]}), types.SimpleNamespace(x=[1]),
        list[int], int | str, iter([[1]]), iter({1: 2}.items()), iter((1,)),
        itertools.chain([1], [2]), itertools.tee([1])[0],
        itertools.count([1].__len__()), itertools.zip_longest([1], [2]),
        enumerate([1]), zip([1], [2]), map(len, [[1]]), filter(None, [1]),
        reversed([1]), slice([1], [2]), memoryview(bytearray(3)),
        super(SlottedChild, SlottedChild()), functools.lru_cache(node),
        functools.singledispatch(node), functools.cached_property(node),
        threading.Thread(target=node), threading.Lock(), threading.local(),
        {}.keys(), {1: 2}.values(), {1: 2}.items(), object.__str__,
        str.join, int.__add__, type.__dict__["__mro__"],
        types.FunctionType.__dict__["__globals__"], ctypes.c_int(1),
        (ctypes.c_int * 3)(), ctypes.py_object([1]), "text", 1, 1.5, None,
        b"bytes", object(), Exception, type, object, int,
        compile("x", "f", "eval"),
    ]
    try:
        raise ExceptionGroup("group", [ValueError([1]), OSError(1, "x")])
    except ExceptionGroup as group:
        things.append(group)
    return things


def counted(things):
    return collections.Counter(id(thing) for thing in things)
