# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""While a question of ours holds automatic collection off, the program's own switch is the program's."""

import pytest

from process import HELD, NODES, run_ok

PROGRAM = NODES + HELD + """
from cumem import _runtime
functions = gc.enable, gc.disable, gc.isenabled
@contextlib.contextmanager
def held():
    with held_by_another_thread(_runtime._no_collection()):
        yield
    assert functions == (gc.enable, gc.disable, gc.isenabled)
def made_of_many():
    before = [row["collections"] for row in gc.get_stats()]
    kept = [[] for _ in range(10_000)]
    return [row["collections"] for row in gc.get_stats()] != before
handle = cumem.observe_tensor_cycles(print)
"""


@pytest.mark.parametrize("before", ["enable", "disable"])
@pytest.mark.parametrize("asked", ["enable", "disable"])
def test_what_the_program_asks_meanwhile_holds_after(tmp_path, before, asked):
    run_ok(PROGRAM + f"""
gc.{before}()
with held():
    assert gc.isenabled() is {before == "enable"}
    assert gc.{asked}() is None
    assert gc.isenabled() is {asked == "enable"}
    assert not made_of_many()
assert gc.isenabled() is {asked == "enable"}
assert made_of_many() is {asked == "enable"}
""", cwd=tmp_path)


def test_the_last_of_several_gives_it_back(tmp_path):
    run_ok(PROGRAM + """
with held():
    with _runtime._no_collection():
        pass
    cumem.find_cycles()
    assert gc.isenabled() and not made_of_many()
    gc.collect()  # by hand it goes on
assert gc.isenabled() and made_of_many()
gc.disable()
cumem.find_cycles()
assert not gc.isenabled()
""", cwd=tmp_path)


def test_a_child_is_forked_meanwhile(tmp_path):
    run_ok(PROGRAM + """
def child():
    assert gc.isenabled() and made_of_many()
    gc.disable()
    assert not gc.isenabled() and not made_of_many()
with held():
    if (pid := os.fork()) == 0:
        child()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert gc.isenabled() and made_of_many()
""", cwd=tmp_path)


def test_another_interpreter_has_its_own(tmp_path):
    interpreters = pytest.importorskip("_xxsubinterpreters")
    assert interpreters
    run_ok(PROGRAM + """
import _xxsubinterpreters as interpreters
other = interpreters.create()
with held():
    interpreters.run_string(other, "import gc; gc.disable(); assert not gc.isenabled(); gc.enable(); assert gc.isenabled()")
    assert gc.isenabled() and not made_of_many()
interpreters.destroy(other)
assert gc.isenabled()
""", cwd=tmp_path)


def test_why_alive_holds_what_it_walks(tmp_path):
    # On CPython 3.11 an allocation of the walk's own would collect at once.
    run_ok("""
import functools, gc, cumem
class Thing: pass
def make_dead_cycle():
    box = [thing]
    def function(x):
        return box.pop()
    function.cached = functools.lru_cache(maxsize=4)(function)
    function.cached(1)
gc.disable()
cumem.why_alive(object())
for allocations in range(1, 30):
    gc.collect()
    thing = Thing()
    make_dead_cycle()
    gc.set_threshold(gc.get_count()[0] + allocations, 10, 10)
    gc.enable()
    (path,) = cumem.why_alive(thing)
    gc.disable()
    assert str(path) in (
        "`__main__.thing` > Thing",
        "a dead cycle, until the next collection:"
        " lru_cache of make_dead_cycle.<locals>.function > cached result > Thing"), path
""", cwd=tmp_path, PYTHONMALLOC="debug")
