# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Where a thread is: compared with the frames that Python shows."""

import asyncio
import functools
import random
import sys
import threading
import time

import pytest

from objects_zoo import *  # noqa: F403


HEARS = not PUBLIC_ONLY
DEEPEST = 64  # as objects.h has it


@pytest.fixture(params=["compared", "by address"] if HEARS else ["compared"])
def probe(folder, request):
    """Once with code objects compared, once while their deaths are heard."""
    module = import_probe(folder)
    module.hear(request.param == "by address")
    if request.param == "by address":
        while not module.status()["code"].startswith("by address"):
            assert module.renew()  # another test has left many stacks
            module.hear(True)
    yield module
    module.hear(False)


def expected_stack(frame, skip=0):
    stack = []
    while frame is not None:
        stack.append((frame.f_code.co_filename, frame.f_code.co_qualname,
                      frame.f_lineno))
        frame = frame.f_back
    return stack[skip:]


def both(probe, without_gil=False):
    """Where it is cut, frames of the interpreter's own were counted, too."""
    ours, expected = probe.stack(without_gil), expected_stack(sys._getframe())
    number, frames, cut = ours
    assert number != 0
    assert [frame[:2] for frame in frames] == [
        frame[:2] for frame in expected[:len(frames)]]
    assert [frame[2] for frame in frames[1:]] == [
        frame[2] for frame in expected[1:len(frames)]]
    assert cut == (len(frames) < len(expected))
    assert len(frames) == min(len(expected), DEEPEST) or (
        cut and DEEPEST / 2 < len(frames) < DEEPEST)
    return ours


def deep(n, call):
    return deep(n - 1, call) if n else call()


@pytest.mark.parametrize("without_gil", [False, True])
def test_the_stack_is_the_one_that_python_shows(probe, without_gil):
    if without_gil and PUBLIC_ONLY:
        pytest.skip("public API only")
    call = functools.partial(both, probe, without_gil)
    assert in_thread(call)[2] is False
    assert call() == call()
    for n in (1, 20, 100):
        deep(n, call)

    def in_generator():
        yield call()

    class WithProperty:
        @property
        def x(self):
            return call()

        def __del__(self):
            call()

    async def in_coroutine():
        await asyncio.sleep(0)
        return call()

    next(in_generator())
    assert WithProperty().x
    assert sorted([2, 1], key=lambda _: call()[0])
    assert list(map(lambda _: call(), [1]))
    assert [call() for _ in "a"]
    assert asyncio.run(in_coroutine())
    assert eval("call()", {"call": call})


def test_a_stack_is_found_again(probe):
    ids = {deep(30, probe.stack)[0] for _ in range(1000)}
    assert len(ids) == 1
    others = {probe.stack()[0], probe.stack()[0]} | {
        deep(i, probe.stack)[0] for i in range(5)}
    assert len(others) >= 6
    assert not others & ids


def test_r21_a_deep_stack_is_cut(probe):
    number, frames, cut = deep(400, probe.stack)
    assert number and cut and len(frames) == DEEPEST


@pytest.mark.skipif(PUBLIC_ONLY, reason="frames further out are read where their layout is known")
def test_r21_of_a_deep_stack_of_a_library_the_users_frame_is_kept(probe):
    """In forty nested modules of torch nothing within the bound is the program's."""
    names = {}
    exec(compile("def down(n, call):\n return down(n - 1, call) if n else call()\n",
                 asyncio.__file__, "exec"), names)
    down, found = names["down"], {}

    def first():
        return down(100, probe.stack)

    def second():
        return down(100, probe.stack)

    for _ in range(3):
        for here in first, second:
            number, frames, cut = here()
            assert number and cut and len(frames) == DEEPEST + 1
            assert {frame[1] for frame in frames[:-1]} == {"down"}
            code = here.__code__
            assert frames[-1] == (code.co_filename, code.co_qualname, code.co_firstlineno + 1)
            found.setdefault(here.__code__, number)
            assert found[code] == number
    assert len(set(found.values())) == 2


def test_r21_a_deeper_stack_takes_no_longer(probe):
    """Ten times as deep as it is read."""
    def seconds():
        best = 1
        for _ in range(100):
            start = time.perf_counter()
            probe.stack()
            best = min(best, time.perf_counter() - start)
        return best

    assert deep(10 * DEEPEST, seconds) < 3 * deep(DEEPEST, seconds)


def in_thread(function):
    """Where the stack is short: pytest's own frames would be nearly all."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_stacks_around_the_deepest(probe):
    """Each is found by one hash, whichever stack was walked before."""
    def at_each_depth():
        found = []
        for depths in (range(70), range(69, -1, -1), range(0, 70, 3)):
            numbers = {n: deep(n, functools.partial(both, probe))[0] for n in depths}
            found.append((numbers, probe.status()["known_stacks"]))
        return found

    (up, known), (down, after), (some, at_last) = in_thread(at_each_depth)
    assert up == down and some == {n: up[n] for n in some}
    assert known == after == at_last
    assert len(set(up.values())) > 60


class Tree:
    """Calls that branch off from one another: the same prefix, other frames, other sizes."""

    def __init__(self, probe):
        self.probe = probe

    def go(self, choices):
        return getattr(self, choices[0])(choices[1:]) if choices else both(self.probe)[0]

    def narrow(self, choices):
        return self.go(choices)

    def wide(self, choices):
        a, b, c, d, e, f = range(6)
        return self.go(choices), a, b, c, d, e, f

    def twice(self, choices):
        first = self.go(choices)
        second = self.go(choices)
        return first, second

    def generated(self, choices):
        return [item for item in (self.go(choices) for _ in range(2))]

    def sorted(self, choices):
        return sorted([1], key=lambda _: bool(self.go(choices))), self.go(choices)


def test_a_stack_is_the_same_after_any_other(probe):
    """Each walk begins with what the last one of the thread, or of another, has met."""
    names = ["narrow", "wide", "twice", "generated", "sorted"]
    shapes = [random.Random(n).choices(names, k=n % 6) for n in range(40)]
    known, errors = {}, []

    def work(seed):
        order = random.Random(seed)
        tree = Tree(probe)
        try:
            for _ in range(60):
                shape = order.choice(shapes)
                found = deep(len(shape) % 2, functools.partial(tree.go, shape))
                assert known.setdefault(tuple(shape), found) == found
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(known) == len(set(map(tuple, shapes)))


def inner(call):
    return call()


def outer(call):
    return inner(call)


NOTED = 12345  # no stack has this number: who answers it did not walk


def test_a_tensor_has_the_stack_of_its_memory_where_nothing_ran_between(probe):
    note, tensor = functools.partial(probe.note_stack, NOTED), probe.tensor_stack
    by_address = probe.status()["code"].startswith("by address")
    known, first, second = [call() for call in (tensor, note, tensor, tensor)][::2] + [tensor()]
    assert known != NOTED != second and (first == NOTED) == by_address
    at_once = [outer(call) for call in (note, tensor, tensor)]
    assert (at_once[1] == NOTED) == by_address and at_once[2] != NOTED
    stacks = [outer(call) for call in (tensor, probe.memory_stack, tensor)]
    assert len(set(stacks)) == 1 and stacks[0] not in at_once


def test_a_tensor_has_not_the_stack_of_other_memory(probe):
    note, tensor = functools.partial(probe.note_stack, NOTED), probe.tensor_stack
    note()
    assert tensor() not in (0, NOTED)  # another instruction
    inner(note)
    assert inner(tensor) not in (0, NOTED)  # the same one, called from elsewhere
    outer(note)
    assert outer(tensor) not in (0, NOTED)
    for call in (note, probe.tensor_stack):
        tensor()  # the next tensor alone is its memory's
        assert call() != NOTED
    found = []
    for call in (note, lambda: deep(3, tensor), tensor):
        found.append(call())
    assert NOTED not in found


def test_stacks_of_threads(probe):
    results = []

    def work():
        for i in range(200):
            results.append(both(probe)[0])
            deep(i % 20, functools.partial(both, probe, not PUBLIC_ONLY))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 800


def code_of(name):
    return compile("result = stack()", name, "exec")


def check_it_names_itself(probe, code):
    namespace = {"stack": probe.stack}
    exec(code, namespace)
    assert namespace["result"][1][0] == (code.co_filename, "<module>", 1)


def test_stacks_of_code_that_came_and_went(probe):
    for i in range(2000):
        check_it_names_itself(probe, code_of(f"cell{i}"))


@pytest.mark.skipif(not HEARS, reason="deaths of code are not told")
def test_addresses_name_code_until_it_dies(folder):
    probe = import_probe(folder)
    assert probe.renew()
    probe.hear(True)
    seen = set()
    for turn in range(3):
        assert probe.status()["code"].startswith("by address")
        exec(compile("pass", "not noted", "exec"))
        assert probe.status()["code"].startswith("by address")
        code = code_of(f"turn{turn}")
        seen.add(id(code))
        for _ in range(2):
            check_it_names_itself(probe, code)
        del code
        assert probe.status()["code"].startswith("compared: some died")
        probe.rest()
        assert probe.status()["code"].startswith("compared: some died")
        time.sleep(1.1)
        probe.rest()
    assert len(seen) < 3  # else nothing lay where another had lain
    probe.hear(False)


@pytest.mark.skipif(not HEARS, reason="deaths of code are not told")
def test_who_hears_of_deaths_goes_in_any_order(folder):
    import cumem

    probe = import_probe(folder)
    assert probe.renew()
    for turn in range(6):
        probe.hear(True)
        handle = cumem.observe_tensor_cycles(print)
        if turn % 2:
            probe.hear(False)
            heard = cumem.status()["layouts"]["code"]
        else:
            handle.remove()
            heard = probe.status()["code"]
        assert heard.startswith("by address"), heard
        check_it_names_itself(probe, code_of(f"order{turn}"))
        handle.remove()
        probe.hear(False)


@pytest.mark.skipif(not HEARS, reason="deaths of code are not told")
def test_no_turn_begins_when_many_stacks_are_known(folder):
    probe = import_probe(folder)
    assert probe.renew()
    for _ in range(3000):
        probe.hear(True)
        if not probe.status()["code"].startswith("by address"):
            break
        for i in range(60):
            deep(i, probe.stack)
        probe.hear(False)
    assert probe.status()["code"] == "compared: some die again and again"
    assert probe.stack()[0] != 0
    probe.hear(False)
    assert probe.renew()


def test_stacks_without_end_are_bounded(probe):
    assert probe.renew()
    source = "def outer(call):\n" + " inner(call)\n" * 520
    source += "def inner(call):\n" + " call(1)\n" * 520
    namespace = {}
    exec(compile(source, "<many>", "exec"), namespace)
    ids = []

    def work():
        for _ in range(2):
            namespace["outer"](lambda _: ids.append(probe.stack_cost(1)[1]))

    thread = threading.Thread(target=work)  # a stack of few frames
    thread.start()
    thread.join()
    half = 520 * 520
    assert 200000 < len(set(ids)) < half
    assert 0 not in ids[:200000]
    assert ids[half:][:200000] == ids[:200000]
    assert probe.status()["lost_stacks"] == ids.count(0) > 0
    assert probe.renew()


def test_stacks_of_greenlets(probe):
    greenlet = pytest.importorskip("greenlet")

    def work():
        for _ in range(3):
            results.append(probe.stack())
            main.switch()

    results = []
    main = greenlet.getcurrent()
    other = greenlet.greenlet(work)
    for _ in range(3):
        other.switch()
        both(probe)
    assert [frame[1] for frame in results[0][1]][0].endswith("work")
    assert results[0] == results[1] == results[2]
