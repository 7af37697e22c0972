# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What an object's references are called (pyext/objects/objects.h)."""

import collections
import functools
import gc
import sys
import sysconfig
import types
import weakref

import pytest

from objects_zoo import *  # noqa: F403


# ---- layouts


@pytest.mark.skipif(PUBLIC_ONLY, reason="public API only")
def test_the_layouts_are_proven_on_this_version(probe):
    status = probe.status()
    assert (status["stack"], status["attributes"], status["frames"]) == (
        "struct layout",) * 3


def test_a_start_leaves_nothing_behind(probe):
    gc.collect()
    modules = set(sys.modules)
    before = len(gc.get_objects())
    assert probe.renew()
    assert gc.isenabled()
    # Free-threaded, functions and code are freed by collections only.
    assert gc.collect() == 0 or sysconfig.get_config_var("Py_GIL_DISABLED")
    assert len(gc.get_objects()) <= before
    assert set(sys.modules) - modules <= {"opcode", "_opcode",
                                          "_opcode_metadata"}


def in_frozen_dict():
    return frozendict({"k": MARK})  # noqa: F821


NAMED = {
    "list": (lambda: [None, MARK], [("[1]", ITEM)]),
    "list, twice": (lambda: [MARK, MARK], [("[0]", ITEM), ("[1]", ITEM)]),
    "long list": (lambda: [MARK] * 20,
                  [(f"[{i}]", ITEM) for i in range(20)]),
    "tuple": (lambda: (0, 1, MARK), [("[2]", ITEM)]),
    "named tuple": (lambda: Pair(0, MARK), [("[1]", ITEM)]),
    "set": (lambda: {node}, [("element", ELEMENT)], node),
    "frozenset": (lambda: frozenset([1, node]), [("element", ELEMENT)], node),
    "dict, str": (lambda: {"key": MARK}, [("['key']", VALUE)]),
    "dict, long str": (lambda: {"model." * 8 + "lora_A.weight": MARK},
                       [("['model.model....el.model.model.lora_A.weight']",
                         VALUE)]),
    "dict, 40 characters": (lambda: {"k" * 40: MARK},
                            [("['" + "k" * 40 + "']", VALUE)]),
    "dict, quote": (lambda: {"a'b\\\n": MARK}, [(r"['a\'b\\\n']", VALUE)]),
    "dict, accents": (lambda: {"\u00e9\u20ac\U0001f600": MARK},
                      [("['\u00e9\u20ac\U0001f600']", VALUE)]),
    "dict, surrogate": (lambda: {"\udc80": MARK}, [("['\udc80']", VALUE)]),
    "dict, int": (lambda: {-7: MARK}, [("[-7]", VALUE)]),
    "dict, large int": (lambda: {1 << 80: MARK}, [("[...]", VALUE)]),
    "dict, float": (lambda: {0.1: MARK}, [("[0.1]", VALUE)]),
    "dict, whole float": (lambda: {2.0: MARK}, [("[2.0]", VALUE)]),
    "dict, bytes": (lambda: {b"ab\xff": MARK}, [(r"[b'ab\xff']", VALUE)]),
    "dict, None": (lambda: {None: MARK}, [("[None]", VALUE)]),
    "dict, bool": (lambda: {True: MARK}, [("[True]", VALUE)]),
    "dict, tuple": (lambda: {(1,): MARK}, [("[<tuple>]", VALUE)]),
    "dict, object": (lambda: {Node(): MARK},
                     [("[<objects_zoo.Node>]", VALUE)]),
    "dict, key": (lambda: {node: 1}, [("key", KEY)], node),
    "ordered dict": (lambda: collections.OrderedDict(k=MARK),
                     [("['k']", VALUE)]),
    "default dict": (lambda: collections.defaultdict(list, k=MARK),
                     [("['k']", VALUE)]),
    "dict subclass": (lambda: DictNode(k=MARK), [("['k']", VALUE)]),
    "list subclass": (lambda: ListNode([MARK]), [("[0]", ITEM)]),
    "tuple subclass": (lambda: TupleNode([MARK]), [("[0]", ITEM)]),
    "deque": (lambda: collections.deque([MARK]), [("[*]", ITEM)]),
    "slots": (lambda: slotted(), [(".second", ATTRIBUTE)]),
    "slots of a base": (lambda: slotted(SlottedChild),
                        [(".second", ATTRIBUTE)]),
    "slots with dict": (lambda: slotted(SlottedWithDict),
                        [(".second", ATTRIBUTE)]),
    "cell": (lambda: types.CellType(MARK), [("cell_contents", CELL_CONTENTS)]),
    "function": (function_with_everything,
                 []),
    "module": (lambda: of_module(), [("__dict__", INSTANCE_DICT)],
               lambda made: made.__dict__),
    "bound method": (lambda: node().method, [("__self__", BOUND_SELF)],
                     lambda made: made.__self__),
    "bound method, function": (lambda: node().method,
                               [("__func__", BOUND_FUNCTION)], Node.method),
    "builtin method": (lambda: MARK.append, [("__self__", BOUND_SELF)]),
    "method-wrapper": (lambda: MARK.__len__, [("__self__", BOUND_SELF)]),
    "partial": (lambda: functools.partial(node, MARK),
                [("func", PARTIAL_FUNC)], node),
    "partial, args": (lambda: functools.partial(print, MARK),
                      [("args", PARTIAL_ARG)], lambda made: made.args),
    "partial, keywords": (lambda: functools.partial(print, file=MARK),
                          [("keywords", PARTIAL_ARG)],
                          lambda made: made.keywords),
    "property": (lambda: property(node), [(".fget", ATTRIBUTE)], node),
    "staticmethod": (lambda: staticmethod(node),
                     [("__func__", BOUND_FUNCTION)], node),
    "weakref": (lambda: weakref.ref(Node, node),
                [("__callback__", WEAKREF_CALLBACK)], node),
    "exception": (lambda: caught(MARK), [("__traceback__", EXCEPTION_LINK)],
                  lambda made: made.__traceback__),
    "exception, args": (lambda: caught(MARK), [(".args", ATTRIBUTE)],
                        lambda made: made.args),
    "exception, context": (lambda: chained(), [("__context__",
                                                EXCEPTION_LINK)],
                           lambda made: made.__context__),
    "exception, cause": (lambda: caused(), [("__cause__", EXCEPTION_LINK)],
                         lambda made: made.__cause__),
    "traceback": (lambda: caught(MARK).__traceback__,
                  [("tb_frame", TB_FRAME)], lambda made: made.tb_frame),
    "traceback, next": (lambda: caught_below().__traceback__,
                        [("tb_next", TB_NEXT)], lambda made: made.tb_next),
    "type, bases": (lambda: SlottedChild, [("__bases__", CLASS)],
                    lambda made: made.__bases__),
    "type, mro": (lambda: SlottedChild, [("__mro__", CLASS)],
                  lambda made: made.__mro__),
    "instance, class": (lambda: node(), [("__class__", CLASS)], Node),
    "namespace": (lambda: types.SimpleNamespace(x=MARK),
                  [("__dict__", INSTANCE_DICT)], lambda made: made.__dict__),
    "exception, dict": (lambda: of_error(), [("__dict__", INSTANCE_DICT)],
                        lambda made: made.__dict__),
}
NAMED["function"] = (function_with_everything, [("__defaults__", DEFAULT)],
                     lambda made: made.__defaults__)
NAMED["function, keyword defaults"] = (
    function_with_everything, [("__kwdefaults__", DEFAULT)],
    lambda made: made.__kwdefaults__)
NAMED["function, dict"] = (
    function_with_everything, [("__dict__", INSTANCE_DICT)],
    lambda made: made.__dict__)
NAMED["function, globals"] = (
    function_with_everything, [("__globals__", GLOBALS)],
    lambda made: made.__globals__)
NAMED["function, closure"] = (
    lambda: closure(MARK), [("__closure__", CLOSURE)],
    lambda made: made.__closure__)
if sys.version_info >= (3, 15):
    NAMED["frozendict"] = (in_frozen_dict, [("['k']", VALUE)])
if not PUBLIC_ONLY:
    NAMED |= {
        "int subclass": (lambda: of_int(), [("__dict__", INSTANCE_DICT)],
                         lambda made: made.__dict__),
        "list subclass, dict": (lambda: of_list(), [("__dict__", INSTANCE_DICT)],
                                lambda made: made.__dict__),
        "instance": (lambda: node(x=MARK), [(".x", ATTRIBUTE)]),
        "generator": (lambda: started(generator(MARK)),
                      [("local x", LOCAL), ("local y", LOCAL)]),
        "generator, not started": (lambda: generator(MARK),
                                   [("local x", LOCAL)]),
        "coroutine": (lambda: started(coroutine(MARK)),
                      [("local x", LOCAL)]),
        "async generator": (lambda: started(async_generator(MARK)),
                            [("local x", LOCAL)]),
        "yield from": (lambda: started(delegating(MARK)),
                       [("gi_yieldfrom", REFERENCE)],
                       lambda made: made.gi_yieldfrom),
        "await": (lambda: started(outer_coroutine(MARK)),
                  [("cr_await", REFERENCE)], lambda made: made.cr_await),
        "frame of generator": (lambda: with_frame(generator(MARK)),
                               [("gi_frame", REFERENCE)],
                               lambda made: made.gi_frame),
        "frame": (lambda: returned_frame(MARK),
                  [("local x", LOCAL), ("local y", LOCAL)]),
        "frame, back": (lambda: below(), [("f_back", F_BACK)],
                        lambda made: made.f_back),
    }


def is_maker(referent):
    return isinstance(referent, types.FunctionType) and (
        referent.__name__ == "<lambda>")


@pytest.mark.parametrize("text, shown", [
    ("layer1.0.weight", True), ("loss/train", True), ("k-1:2", True), ("gr\u00f6\u00dfe", True),
    ("two words", False), ("a'b", False), ("a\n", False), ("", False), ("\u20ac", False),
    ("\udc80", False), (b"layer1", False)])
def test_a_text_that_is_no_name_is_no_label(probe, text, shown):
    kind = type(text).__name__
    for asked in False, True, False:
        probe.renew()
        probe.show_texts(asked)
        label = label_of_key(probe, text)
        assert (label == f"[<{kind}>]") == (not shown and not asked), label


@pytest.mark.parametrize("case", NAMED)
def test_a_reference_has_its_name(probe, case):
    probe.show_texts(True)
    make, expected, referent = (*NAMED[case], MARK)[:3]
    made = make()
    if is_maker(referent):
        referent = referent(made)
    assert edges(probe, made, referent) == expected


@pytest.mark.skipif(PUBLIC_ONLY, reason="dict only")
def test_attributes_are_named_with_and_without_a_dict(probe):
    plain, other = alone(x=MARK, y=[2]), with_dict(x=MARK, y=[2])
    assert [label for label, _ in edges(probe, plain)] == [
        ".x", ".y", "__class__"]
    # Which of the two shows the values depends on the patch release.
    direct = edges(probe, other, MARK)
    through = edges(probe, other.__dict__, MARK)
    assert direct in ([], [(".x", ATTRIBUTE)])
    assert through in ([], [("['x']", VALUE)])
    assert (direct == []) != (through == [])
    if through:
        assert edges(probe, other, other.__dict__) == [
            ("__dict__", INSTANCE_DICT)]


@pytest.mark.skipif(PUBLIC_ONLY, reason="dict only")
def test_reading_attributes_makes_no_dict(probe):
    made = alone(x=MARK, y=1)
    probe.describe(made)
    probe.edges(made)
    assert not any(type(referent) is dict for referent in gc.get_referents(
        made))


@pytest.mark.skipif(PUBLIC_ONLY, reason="dict only")
def test_deleted_and_many_attributes(probe):
    made = alone(a=1, x=MARK, b=2)
    del made.a
    assert edges(probe, made, MARK) == [(".x", ATTRIBUTE)]
    many = Node()
    for i in range(100):
        setattr(many, f"a{i}", MARK)
    labels = {label for _, label, _ in probe.edges(many)} | {
        label for referent, _, _ in probe.edges(many)
        if type(referent) is dict
        for _, label, _ in probe.edges(referent, MARK)}
    assert len(labels & ({f".a{i}" for i in range(100)}
                         | {f"['a{i}']" for i in range(100)})) == 100


def label_of_key(probe, key):
    return edges(probe, {key: MARK}, MARK)[0][0]


def test_names_that_lie_where_others_have_lain(probe):
    places = set()
    for i in range(500):
        key = f"key{i}"
        places.add(id(key))
        assert label_of_key(probe, key) == f"['key{i}']"
        assert label_of_key(probe, key) == f"['key{i}']"
    assert len(places) < 250


@pytest.mark.skipif(PUBLIC_ONLY, reason="dict only")
def test_attributes_of_classes_that_came_and_went(probe):
    for i in range(200):
        made = type(f"Made{i}", (), {})()
        setattr(made, f"attribute{i}", MARK)
        for _ in range(2):
            assert edges(probe, made, MARK) == [(f".attribute{i}", ATTRIBUTE)]


def test_a_name_is_an_attribute_and_a_key(probe):
    made = type("Own", (), {})()
    made.both = MARK
    for _ in range(2):
        assert edges(probe, {"both": MARK}, MARK) == [("['both']", VALUE)]
        assert edges(probe, made, MARK) == [(".both", ATTRIBUTE)] or PUBLIC_ONLY


@pytest.mark.skipif(PUBLIC_ONLY, reason="unnamed")
def test_cells_have_the_names_of_their_variables(probe):
    made = closure(MARK)
    cells = made.__closure__
    probe.begin([made, cells, cells[0]])
    assert edges(probe, cells) == [("cell x", CLOSURE_CELL)]
    assert edges(probe, cells[0]) == [("cell x", CELL_CONTENTS)]
    probe.begin([])
    assert edges(probe, cells) == [("[0]", ITEM)]
    assert edges(probe, cells[0]) == [("cell_contents", CELL_CONTENTS)]


@pytest.mark.skipif(PUBLIC_ONLY, reason="unnamed")
def test_cells_of_frames_have_names_too(probe):
    frame = frame_with_cell(MARK)
    cell = next(thing for thing, _, _ in probe.edges(frame)
                if type(thing) is types.CellType)
    assert edges(probe, frame, cell) == [("local x", LOCAL)]
    probe.begin([frame])
    assert edges(probe, cell) == [("cell x", CELL_CONTENTS)]


def test_variables_of_a_cleared_frame_and_a_finished_generator(probe):
    frame = returned_frame(MARK)
    frame.clear()
    assert edges(probe, frame, MARK) == []
    done = generator(MARK)
    list(done)
    assert edges(probe, done, MARK) == []
    assert "generator" in probe.describe(done)["label"] or PUBLIC_ONLY


@pytest.mark.skipif(PUBLIC_ONLY, reason="unnamed")
def test_a_running_frame_and_generator_show_nothing_wrong(probe):
    seen = []

    def running(x):
        seen.append(edges(probe, this[0], x))
        seen.append(edges(probe, sys._getframe(), x))
        yield

    this = [running(MARK)]
    next(this[0])
    assert seen[0] in ([], [("local x", LOCAL)])
    assert seen[1] == []
