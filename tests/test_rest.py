# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Where iterations end and nothing is found, gc.callbacks is left alone."""

import pytest

from process import NODES, run_ok

QUIET = NODES + """
def iterations(count, generation=0):
    for _ in range(count):
        keep = [[] for _ in range(50)]
        gc.collect(generation)
        cumem.step()
def unheard():
    return cumem.status()["seen"]["unheard"]
gc.collect()
make_pair()
pair = gc.collect()
seen = []
handle = cumem.observe_tensor_cycles(seen.append)
gc.disable()
iterations(40)
assert gc.callbacks == [] and unheard() > 0
"""


def test_a_cycle_is_told_before_its_collection_returns(tmp_path):
    run_ok(QUIET + """
for generation in (0, 1, 2):
    iterations(40)
    assert gc.callbacks == []
    seen.clear()
    make_pair()
    gc.collect(generation)
    assert len(seen) == 1 and seen[0].report["cycles"][0]["bytes_each"] == 4096
    assert gc.callbacks == [], "heard to its stop alone"
lost = cumem.status()["lost"]
assert not any(lost.values()), lost
""", cwd=tmp_path)


@pytest.mark.parametrize("undone", [
    "gc.freeze()",
    "gc.freeze(); gc.unfreeze()",
    "held = gc.get_objects(); gc.collect(); del held",
    "gc.callbacks.clear()",
])  # fmt: skip
def test_what_user_code_undoes_is_done_again_at_the_end_of_an_iteration(tmp_path, undone):
    run_ok(QUIET + f"""
{undone}
cumem.step()
for generation in (0, 1, 2):
    seen.clear()
    make_pair()
    gc.collect(generation)
    assert len(seen) == 1
    iterations(40)
    assert gc.callbacks == []
""", cwd=tmp_path)


def test_who_adds_a_callback_is_called_as_without_us(tmp_path):
    run_ok(QUIET + """
for what in (lambda: None, make_pair):
    calls = []
    gc.callbacks.append(lambda phase, info: calls.append((phase, info["generation"])))
    for _ in range(3):
        what()
        gc.collect(1)
    assert calls == [("start", 1), ("stop", 1)] * 3, calls
    gc.callbacks.pop(next(i for i, c in enumerate(gc.callbacks) if hasattr(c, "__code__")))
    iterations(40)
""", cwd=tmp_path)


def test_without_iterations_every_collection_is_heard(tmp_path):
    """Nobody would put back what gc.freeze() takes along."""
    run_ok(NODES + """
handle = cumem.observe_tensor_cycles(print)
for _ in range(100):
    gc.collect(0)
assert len(gc.callbacks) == 1 and cumem.status()["seen"]["unheard"] == 0
cumem.step()
for _ in range(3000):
    gc.collect(0)
assert len(gc.callbacks) == 1, "the last end of an iteration is long past"
""", cwd=tmp_path)


def test_removal_at_rest_takes_everything_back(tmp_path):
    run_ok(QUIET + """
handle.remove()
assert not [o for o in gc.get_objects() if type(o).__name__ == "gc_sentinel"]
gc.collect()
make_pair()
assert gc.collect() == pair and seen == []
""", cwd=tmp_path)


def test_removal_while_somebody_holds_all_objects(tmp_path):
    run_ok(QUIET + """
held = [o for o in gc.get_objects() if type(o).__name__ == "gc_sentinel"]
assert len(held) == 6
handle.remove()
gc.collect()
make_pair()
assert gc.collect() == pair and not any(map(gc.is_tracked, held))
""", cwd=tmp_path)


def test_debug_flags_are_heard_of_at_the_end_of_an_iteration(tmp_path):
    done = run_ok(QUIET + """
gc.set_debug(gc.DEBUG_COLLECTABLE)
cumem.step()
make_pair()
gc.collect()
""", cwd=tmp_path)
    assert "collectable <Node" in done.err and "gc_sentinel" not in done.err


def test_a_forked_child_goes_on_as_it_was(tmp_path):
    done = run_ok(QUIET + """
gc.collect()
iterations(40)
make_pair()
if os.fork() == 0:
    print(gc.collect() - pair, len(seen), gc.callbacks)
    sys.stdout.flush()
    os._exit(0)
os.wait()
print(gc.collect() - pair, len(seen))
""", cwd=tmp_path)
    assert done.lines == ["0", "0", "[]", "0", "1"]
