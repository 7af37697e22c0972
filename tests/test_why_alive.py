# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem.why_alive(): every kind of root, in words; and nothing is changed."""

import asyncio
import collections
import contextvars
import functools
import gc
import importlib.util
import sys
import sysconfig
import threading
import types

import pytest

import cumem
from objects_zoo import tame_zoo
from process import run_ok
from test_object_safety import CALLS, HostileMeta, hostile_zoo

pytestmark = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="declines on free-threaded builds")


class Thing:
    pass


HERE = __name__
KEPT = {}


def lines(obj, **options):
    return [str(path) for path in cumem.why_alive(obj, **options)]


@pytest.fixture(autouse=True)
def nothing_kept():
    KEPT.clear()
    yield
    KEPT.clear()


def test_module_global():
    KEPT["list"] = [None, Thing()]
    (path,) = cumem.why_alive(KEPT["list"][1])
    assert path.steps == [(f"module {HERE}", ""), ("dict of 1", ".KEPT"),
                          ("list of 2", "['list']"), (f"{HERE}.Thing", "[1]")]
    assert str(path) == (f"`{HERE}.KEPT` (dict, 1 item) > ['list'] (list, 2 items)"
                         f" > [1] > {HERE}.Thing")
    assert repr(path) == f"<Path: {path}>"


def test_local_of_a_running_function():
    kept = [Thing() for _ in range(1200)]
    line = sys._getframe().f_lineno + 1
    (path,) = cumem.why_alive(kept[7])
    assert str(path) == (
        f"test_why_alive.py:{line} test_local_of_a_running_function:"
        f" local `kept` (list, 1,200 items) > [7] > {HERE}.Thing")


def test_variable_that_is_a_cell():
    kept = [Thing()]

    def function():
        return kept

    (first, *_) = lines(function()[0])
    assert ": local `kept` (list, 1 item) > [0] > " in first


def test_closure():
    def make():
        box = Thing()
        return lambda: box

    KEPT["f"] = make()
    found = lines(KEPT["f"]())
    assert found == [
        f"`{HERE}.KEPT` (dict, 1 item) > ['f'] (function <lambda>) > cell box > {HERE}.Thing"]


def test_class_attribute_and_slots():
    class Slotted:
        __slots__ = ("inner",)

    Thing.kept = Slotted()
    Thing.kept.inner = Thing()
    try:
        (line,) = lines(Thing.kept.inner)
        assert line.startswith(f"`{HERE}.Thing` (class Thing) > .kept (")
        assert line.endswith(f") > .inner > {HERE}.Thing")
    finally:
        del Thing.kept


def test_instance_dict_that_was_made_reads_like_one_that_was_not():
    for made in False, True:
        KEPT.clear()
        KEPT[1] = owner = Thing()
        owner.inner = Thing()
        if made:
            owner.__dict__
        del owner
        found = lines(KEPT[1].inner)
        assert found == [
            f"`{HERE}.KEPT` (dict, 1 item) > [1] ({HERE}.Thing) > .inner > {HERE}.Thing"]


def test_another_thread():
    ready, stop = threading.Event(), threading.Event()
    passed = []

    def work():
        mine = {"k": Thing()}
        passed.append(mine["k"])
        ready.set()
        stop.wait(60)

    thread = threading.Thread(target=work, name="loader-3")
    thread.start()
    try:
        assert ready.wait(60)
        found = lines(passed.pop())
        assert any("work, thread loader-3: local `mine` (dict, 1 item) > ['k'] > " in line
                   for line in found), found
    finally:
        stop.set()
        thread.join()


def test_thread_local_data():
    local = threading.local()
    local.inner = Thing()
    found = lines(local.inner)
    assert any("local `local`" in line or "thread-local data" in line for line in found), found


def test_exception_being_handled():
    def raising():
        deep = Thing()
        raise ValueError(deep)

    try:
        raising()
    except ValueError:
        thing = sys.exc_info()[1].args[0]
        found = lines(thing, max_paths=5)
        thing = None
    assert any("thread MainThread: the exception being handled (ValueError) > .args "
               in line for line in found), found
    assert any("tb_frame" in line and line.endswith(f"local deep > {HERE}.Thing")
               for line in found), found


def test_last_exception():
    error = ValueError()
    error.inner = Thing()
    sys.last_value = error
    del error
    try:
        found = lines(sys.last_value.inner)
        assert found == [
            f"`sys.last_value` (ValueError) > .inner > {HERE}.Thing"]
    finally:
        del sys.last_value


def test_context_variables():
    def inside():
        variables = [contextvars.ContextVar(f"number_{i}") for i in range(40)]
        for variable in variables:
            variable.set([Thing()])
        for i in 0, 17, 39:
            found = lines(variables[i].get()[0])
            assert any(f"contextvar number_{i} (list, 1 item) > [0] > " in line
                       and "hamt" not in line for line in found), found

    contextvars.Context().run(inside)


class Cached:
    @functools.lru_cache(maxsize=8)
    def method(self, number):
        return [Thing()]

    @functools.lru_cache(maxsize=None)
    def unbounded(self, number):
        return [Thing()]


def test_lru_cache():
    try:
        first = f"`{HERE}.Cached` (class Cached) > .method (lru_cache of Cached.method) > "
        found = lines(Cached().method(1)[0])
        assert found == [
            first + f"cached result (list, 1 item) > [0] > {HERE}.Thing"]
        instance = Cached()
        instance.method(2)
        found = lines(instance)
        assert first + f"cached arguments (tuple, 2 items) > [0] > {HERE}.Cached" in found
        (line,) = lines(Cached().unbounded(1)[0])
        assert "(lru_cache of Cached.unbounded) > cache (dict, 1 item) > [<" in line
    finally:
        Cached.method.cache_clear()
        Cached.unbounded.cache_clear()


def test_suspended_generator_and_coroutine():
    def generate():
        inner = Thing()
        yield inner

    KEPT["g"] = generate()
    found = lines(next(KEPT["g"]))
    assert found == [
        f"`{HERE}.KEPT` (dict, 1 item) > ['g'] (generator generate) > local inner > {HERE}.Thing"]

    async def wait():
        inner = Thing()
        await asyncio.sleep(0)
        return inner

    KEPT["g"] = coroutine = wait()
    coroutine.send(None)
    inner = coroutine.cr_frame.f_locals["inner"]
    found = lines(inner)
    coroutine.close()
    del coroutine
    assert any("(coroutine wait) > local inner > " in line for line in found), found


def test_running_generator():
    def generate():
        inner = [Thing()]
        yield lines(inner[0])

    (found,) = next(generate())
    assert found.endswith(f"generate: local `inner` (list, 1 item) > [0] > {HERE}.Thing")


@pytest.mark.parametrize("make, edge", [
    (lambda thing: collections.deque([thing]), "collections.deque, 1 item) > [*]"),
    (lambda thing: collections.OrderedDict(k=thing), "collections.OrderedDict, 1 item) > ['k']"),
    (lambda thing: {thing}, "set, 1 item) > element"),
    (lambda thing: (thing, 1), "tuple, 2 items) > [0]"),
    (lambda thing: functools.partial(print, thing), "functools.partial) > args (tuple, 1 item) > [0]"),
    (lambda thing: types.MethodType(print, thing), "method print) > __self__"),
])
def test_containers(make, edge):
    found = lines(KEPT.setdefault("x", make(Thing())) and first_thing(KEPT["x"]))
    assert found == [
        f"`{HERE}.KEPT` (dict, 1 item) > ['x'] ({edge} > {HERE}.Thing"]


def first_thing(held):
    return next(each for each in all_below(held) if type(each) is Thing)


def all_below(held):
    for each in gc.get_referents(held):
        yield each
        if isinstance(each, tuple):
            yield from all_below(each)


def test_untracked_container_of_an_untracked_object():
    KEPT["pair"] = (object(), 1)
    KEPT["table"] = {"k": object()}
    gc.collect()
    assert not gc.is_tracked(KEPT["pair"])
    found = lines(KEPT["pair"][0])
    assert found == [f"`{HERE}.KEPT` (dict, 2 items) > ['pair'] (tuple, 2 items) > [0] > object"]
    found = lines(KEPT["table"]["k"])
    assert found == [f"`{HERE}.KEPT` (dict, 2 items) > ['table'] (dict, 1 item) > ['k'] > object"]


# ---- which ways are told


def test_variables_of_who_asks_come_last():
    alone = Thing()
    (line,) = lines(alone)
    assert "local `obj`" in line or "local `alone`" in line
    KEPT["alone"] = alone
    del alone
    found = lines(KEPT["alone"])
    assert found == [f"`{HERE}.KEPT` (dict, 1 item) > ['alone'] > {HERE}.Thing"]


def test_module_level_variable_that_is_passed(tmp_path):
    done = run_ok("""
        import cumem
        class Thing: pass
        x = Thing()
        print(*cumem.why_alive(x), sep="\\n")
        kept = [x]
        print(*cumem.why_alive(x), sep="\\n")
    """, cwd=tmp_path)
    assert done.out.splitlines() == ["`__main__.x` > Thing",
                                     "`__main__.kept` (list, 1 item) > [0] > Thing"]


def test_as_many_ways_as_asked():
    for i in range(5):
        KEPT[i] = [None]
    KEPT[0][0] = Thing()
    for i in range(1, 5):
        KEPT[i][0] = KEPT[0][0]
    for most in 1, 2, 5:
        found = lines(KEPT[0][0], max_paths=most)
        assert len(found) == most == len(set(found))
    found = lines(KEPT[0][0], max_paths=50)
    assert len(found) == 5


def test_user_before_library(tmp_path):
    done = run_ok("""
        import json, cumem
        class Thing: pass
        json.kept = thing = Thing()
        class A: pass
        a = A(); a.b = A(); a.b.c = [A()]; a.b.c[0].d = thing
        del thing
        print(*cumem.why_alive(json.kept), sep="\\n")
    """, cwd=tmp_path)
    assert done.out.splitlines() == [
        "`__main__.a` (A) > .b (A) > .c (list, 1 item) > [0] (A) > .d > Thing",
        "`json.kept` > Thing"]


def test_what_the_interpreter_keeps():
    for thing in (None, True, 3, (), ..., list, NotImplemented):
        (line,) = lines(thing)
        assert line.startswith("the interpreter: "), line
    assert lines(sys.intern("one of a kind"))[-1].startswith("the interpreter: an interned string")


def test_held_by_c_alone(tmp_path):
    done = run_ok("""
        import ctypes, cumem
        class Thing: pass
        def ask(address):
            return cumem.why_alive(ctypes.cast(address, ctypes.py_object).value)
        thing = Thing()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
        address = id(thing)
        del thing
        print(*ask(address))
    """, cwd=tmp_path)
    assert done.out == "not reachable from Python roots: a C extension holds it > Thing\n"


def test_held_by_what_c_alone_holds(tmp_path):
    done = run_ok("""
        import ctypes, cumem
        class Thing: pass
        def keep(thing):
            hidden = lambda: thing
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(hidden))
            return id(thing)
        def ask(address):
            return cumem.why_alive(ctypes.cast(address, ctypes.py_object).value)
        print(*ask(keep(Thing())))
    """, cwd=tmp_path)
    assert done.out == "C++ only: function <lambda> > cell thing > Thing\n"


def test_held_by_a_dead_cycle_alone(tmp_path):
    done = run_ok("""
        import ctypes, gc, cumem
        gc.disable()
        class Thing: pass
        def leave():
            thing, inner = Thing(), Thing()
            thing.me, thing.inner = thing, inner
            return id(inner)
        def ask(address):
            return cumem.why_alive(ctypes.cast(address, ctypes.py_object).value)
        print(*ask(leave()))
    """, cwd=tmp_path)
    assert done.out == "a dead cycle, until the next collection: Thing > .inner > Thing\n"


def test_what_could_not_be_looked_at_is_said(monkeypatch):
    from cumem import _core

    for cut, unread, words in ((False, True, "variables of running functions cannot be read"),
                               (True, False, "not found among the 1,234 objects")):
        monkeypatch.setattr(_core, "why_alive", lambda *_: ([], "Thing", 1234, cut, unread))
        (line,) = lines(Thing())
        assert words in line and line.endswith(" > Thing")


@pytest.mark.parametrize("bad", [0, -1, 1001, "3", None, 1.5, True])
def test_bad_number_of_ways_is_named(bad):
    with pytest.raises(ValueError) as caught:
        cumem.why_alive(KEPT, max_paths=bad)
    assert repr(bad) in str(caught.value)


# ---- nothing is run, kept or changed


def test_no_code_of_the_user_runs():
    things = hostile_zoo()
    KEPT["hostile"] = things
    CALLS.clear()
    target = [Thing()]
    things.append(target)
    HostileMeta.armed = True
    try:
        found = cumem.why_alive(target[0], max_paths=3)
        for thing in things:
            cumem.why_alive(thing)
    finally:
        HostileMeta.armed = False
        del KEPT["hostile"]
    assert CALLS == []
    assert found


def test_hostile_module_in_sys_modules(tmp_path):
    run_ok("""
        import sys, types, cumem
        calls = []
        class Evil(types.ModuleType):
            def __getattribute__(self, name):
                calls.append(name)
                raise RuntimeError
            __class__ = property(lambda self: calls.append(1))
        class NoModule:
            def __getattr__(self, name):
                calls.append(name)
                raise RuntimeError
        evil = Evil("evil"); types.ModuleType.__setattr__(evil, "kept", [object()])
        sys.modules["evil"], sys.modules["no"], sys.modules[7] = evil, NoModule(), 3
        kept = types.ModuleType.__getattribute__(evil, "kept")
        calls.clear()
        found = [str(p) for p in cumem.why_alive(kept[0])]
        assert calls == [], calls
        assert found[0].startswith(("`__main__.kept`", "`evil.kept`")), found
    """, cwd=tmp_path)


def test_counts_and_collector_stay_as_they_were():
    things = [thing for thing in tame_zoo() if sys.getrefcount(thing) < 1000]
    target = things[0]
    for _ in range(3):
        cumem.why_alive(target)
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        counts = [sys.getrefcount(thing) for thing in things]
        stats, objects = gc.get_stats(), len(gc.get_objects())
        found = cumem.why_alive(target)
        assert gc.get_stats() == stats
        assert not gc.isenabled()
        del found
        assert len(gc.get_objects()) <= objects + 1
        assert [sys.getrefcount(thing) for thing in things] == counts
    finally:
        if enabled:
            gc.enable()


def test_no_hook_is_left(tmp_path):
    run_ok("""
        import gc, sys
        import torch, cumem
        kept = [torch.zeros(3)]
        before = list(gc.callbacks), gc.get_debug(), sys.getprofile(), dict(vars(torch.Tensor))
        (path,) = cumem.why_alive(kept[0])
        assert str(path) == "`__main__.kept` (list, 1 item) > [0] > Tensor [3] float32 cpu 12 B"
        assert before == (list(gc.callbacks), gc.get_debug(), sys.getprofile(),
                          dict(vars(torch.Tensor)))
        assert cumem.status()["interceptor"] == "none"
        assert "nobody" in cumem.status()["why"], cumem.status()
    """, cwd=tmp_path) if importlib.util.find_spec("torch") else pytest.skip("no torch")


def test_nothing_is_kept_alive():
    import weakref

    thing = Thing()
    gone = weakref.ref(thing)
    paths = cumem.why_alive(thing)
    del thing
    assert gone() is None and paths


def test_dead_cycles_are_left_alone():
    import weakref

    gc.collect()
    gc.disable()
    try:
        one, two = Thing(), Thing()
        one.other, two.other = two, one
        gone = weakref.ref(one)
        del one, two
        cumem.why_alive(KEPT)
        assert gone() is not None
    finally:
        gc.enable()
    gc.collect()
    assert gone() is None


def test_a_chain_of_a_million(tmp_path):
    done = run_ok("""
        import cumem
        class Thing: pass
        last = Thing()
        chain = [last]
        for _ in range(1_000_000):
            chain = [chain]
        del last
        def ask():
            thing = chain
            while type(thing) is list:
                thing = thing[0]
            (path,) = cumem.why_alive(thing, max_paths=1)
            return path
        path = ask()
        assert len(path.steps) < 60
        text = str(path)
        assert " more ..." in text and text.startswith("`__main__."), text
        while chain:
            chain = chain.pop() if type(chain[0]) is list else None
        print("ok")
    """, cwd=tmp_path)
    assert done.out == "ok\n"


def test_many_threads_ask_while_others_change_the_heap():
    stop, failed = threading.Event(), []
    kept = {"list": [Thing() for _ in range(100)]}

    def churn():
        while not stop.is_set():
            kept["list"] = [Thing() for _ in range(100)]
            types.SimpleNamespace(x=[1], y={}).x.append({})

    def ask():
        try:
            for _ in range(20):
                assert cumem.why_alive(kept["list"][5])
        except BaseException as error:
            failed.append(error)

    churning = [threading.Thread(target=churn) for _ in range(2)]
    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in churning + asking:
        thread.start()
    for thread in asking:
        thread.join()
    stop.set()
    for thread in churning:
        thread.join()
    assert failed == []


def test_what_only_the_caller_has(tmp_path):
    done = run_ok("""
import ctypes
import cumem
ask = cumem.why_alive
class Kept: pass
print(*ask(Kept()))
print(*cumem.why_alive(Kept(), max_paths=2))
print(*ask(obj=object()))
kept = Kept(); ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
number = id(kept); del kept
print(*ask(ctypes.cast(number, ctypes.py_object).value))
""", cwd=tmp_path)
    lines = done.out.splitlines()
    asker = "held by nothing but the expression that asks > "
    assert [line.startswith(asker) for line in lines] == [True, True, True, False], lines
    assert lines[0] == lines[1] == f"{asker}Kept", lines
    assert lines[3].startswith("not reachable from Python roots: a C extension"), lines


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch")
def test_a_tensor_that_only_the_caller_has(tmp_path):
    done = run_ok("""
import torch, cumem
print(*cumem.why_alive(torch.zeros(3)))
""", cwd=tmp_path)
    assert done.out == "held by nothing but the expression that asks > Tensor [3] float32 cpu 12 B\n", done.out
