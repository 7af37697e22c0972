# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The interceptors see every collection and change nothing.

Each scenario of interceptor_probe/scenarios.py runs in a process of its own
without a hook, and with each interceptor: what it prints, and how it ends,
must be equal.  What the sinks saw is checked here.  Each trap of the design
(nesting, increments, switched stacks, ...) is one of them.
"""

import concurrent.futures
import functools
import json
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PROBE = os.path.join(HERE, "interceptor_probe")
sys.path.insert(0, PROBE)

import found  # noqa: E402

KINDS = ["sentinel", "rest", "stops", "turns", "saveall"]
SECONDS = 300


def reads_lists(kind):
    """The sentinel, heard or at rest."""
    return kind != "saveall"


EXIT_CODES = {"exit_code": 3, "exit_error": 1, "exit_at_once": 5}


@pytest.fixture(scope="session", params=found.pythons(), ids=found.label)
def python(request):
    return request.param


@pytest.fixture(scope="session")
def folder(python, tmp_path_factory):
    try:
        return found.probe_folder(
            python, str(tmp_path_factory.getbasetemp() / "probes"))
    except FileNotFoundError as error:
        pytest.skip(str(error))


class Outcome:
    def __init__(self, done, notes):
        self.code = done.returncode
        self.out = done.stdout
        self.err = re.sub("0x[0-9a-f]+", "0x", done.stderr)
        self.notes = notes

    @property
    def ends(self):
        return self.code, self.out, self.err


@functools.cache
def outcome(python, folder, scenario, mode):
    report = os.path.join(
        os.path.dirname(folder), f"{os.getpid()}-{scenario}-{mode}.json")
    environment = found.plain_environment(
        PROBE_DIR=folder, PROBE_MODE=mode, PROBE_REPORT=report)
    done = subprocess.run(
        [python, "-X", "faulthandler", os.path.join(PROBE, "scenarios.py"),
         scenario],
        env=environment, capture_output=True, text=True, timeout=SECONDS)
    notes = {}
    if os.path.exists(report):
        with open(report) as file:
            notes = json.load(file)
        os.unlink(report)
    return Outcome(done, notes)


def all_modes(python, folder, scenario, modes):
    """Outcomes by mode, made side by side."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = pool.map(
            lambda mode: outcome(python, folder, scenario, mode), modes)
    return dict(zip(modes, made))


def compare(python, folder, scenario, kind):
    """Runs it; the notes of the hooked run."""
    made = all_modes(python, folder, scenario, ["off", kind])
    assert made["off"].code == EXIT_CODES.get(scenario, 0), made["off"].err
    assert "NameError" not in made["off"].err
    assert made[kind].ends == made["off"].ends
    counts = made[kind].notes.get("counts")
    if counts:
        assert not reads_lists(kind) or counts["bad_walks"] == 0
        assert scenario == "no_memory" or counts["no_memory"] == 0
    return made[kind].notes


def incremental(python):
    """A collection is a part of one there: no garbage, no call of ours."""
    return (3, 14, 0) <= found.version(python) < (3, 14, 5)


def test_objects_of_ours_are_in_no_list_but_at_rest(python, folder):
    for kind in KINDS:
        notes = compare(python, folder, "get_objects", kind)
        resting = notes["counts"]["resting"]
        assert resting == (kind in ("rest", "stops", "turns")
                           and not incremental(python))
        assert notes["ours"] == ["gc_sentinel"] * 6 * resting


def test_weak_references_of_others_to_ours(python, folder):
    """Ours stands among them, and is the same one for every collection."""
    for kind in KINDS:
        notes = compare(python, folder, "weak_references_to_ours", kind)
        assert notes["counts"]["objects"] == 9 * 6
        if kind == "rest" and not incremental(python):
            assert notes["referred"] == 4 * 18 and notes["called"] > 9
            assert notes["counts"]["unheard"] >= 9


UNCHANGED = [
    "results", "info_dicts", "finalizer_order",
    "callback_once", "debug_collectable", "debug_flags", "user_garbage",
    "tracing", "recursion_limit", "raising_stop",
    "collecting_stop", "threads", "thread_storm", "callbacks_reordered",
    "by_hand", "exit_code", "exit_error", "exit_at_once",
    "exit_with_threads", "exit_in_cycle", "fork",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", UNCHANGED)
def test_unchanged(python, folder, scenario, kind):
    notes = compare(python, folder, scenario, kind)
    if not scenario.startswith("exit_at"):
        counts = notes["counts"]
        assert counts["collections"] > 0
        # Cleared while ours was in it, and put back as it was at rest.
        assert counts["attached"] \
            or (kind, scenario) == ("turns", "callbacks_reordered")
    if scenario not in ("debug_collectable", "by_hand") \
            and not scenario.startswith("exit") and not incremental(python):
        assert counts["unfired"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_r7_legacy_finalizers_stay_in_garbage(python, folder, kind):
    counts = compare(python, folder, "legacy_finalizer", kind)["counts"]
    assert counts["collections"] > 0
    assert counts["unfired"] == 0 or incremental(python)
    if "Legacy" not in outcome(python, folder, "legacy_finalizer", "off").out:
        pytest.skip("no type with tp_del in this build")


def test_r9_stats_and_counts_equal_a_callback_that_does_nothing(python, folder):
    """R9.  saveall frees after gc has zeroed its count, so only the moments
    of its collections can be compared, not the counts between.  (3.15 also
    counts the objects it looked at: three more for each collection.)"""
    modes = ["off", "noop", *KINDS]
    made = all_modes(python, folder, "same_stats", modes)
    if incremental(python):
        # The size of an increment follows that of the heap, ours included.
        pytest.skip("increments are paced by the number of objects")
    assert made["sentinel"].ends == made["noop"].ends
    assert made["rest"].ends == made["off"].ends
    assert made["rest"].notes["counts"]["unheard"] > 50
    moments = {mode: re.findall("'collections': [0-9]+", made[mode].out)
               for mode in modes}
    assert moments["turns"] == moments["saveall"] == moments["noop"]
    assert len(moments["noop"]) == 3


def test_every_object_is_seen(python, folder):
    for kind in KINDS:
        counts = compare(python, folder, "results", kind)["counts"]
        assert counts["objects"] == 5 * 40 + 2 * 30000
        if not incremental(python):
            assert counts["walks"] == counts["collections"]


@pytest.mark.parametrize("kind", ["sentinel", "rest"])
def test_sentinel_stands_aside_for_debug_collectable(python, folder, kind):
    """gc would print S and its twin."""
    counts = compare(python, folder, "debug_collectable", kind)["counts"]
    assert counts["stood_aside"] == 1 and counts["objects"] == 4


def test_saveall_leaves_the_users_own_saveall(python, folder):
    counts = compare(python, folder, "debug_flags", "saveall")["counts"]
    assert counts["stood_aside"] == 1 and counts["objects"] == 16


def test_our_callback_runs_before_users_weakref_callbacks(python, folder):
    for kind in filter(reads_lists, KINDS):
        notes = compare(python, folder, "callbacks_before_ours", kind)
        assert notes["counts"]["first"] and notes["counts"]["flags"]
        assert notes["sink calls before the user's callback"] == [1]


@pytest.mark.parametrize("kind", KINDS)
def test_resurrection(python, folder, kind):
    """The sentinel sees what a finalizer then revives; the collection and its
    result are the same."""
    notes = compare(python, folder, "resurrection", kind)
    assert notes["seen"].get("Phoenix", 0) == (6 if reads_lists(kind) else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_nested_collections(python, folder, kind):
    notes = compare(python, folder, "nested", kind)
    assert notes["seen"]["Node"] >= 100
    if found.version(python)[:2] == (3, 12):
        assert notes["counts"]["nested"] > 0 or kind == "rest"
        assert notes["seen"]["Node"] >= 6000
    else:
        assert notes["counts"]["nested"] == 0
    if reads_lists(kind):
        assert notes["seen"]["Final"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_nested_too_deeply(python, folder, kind):
    notes = compare(python, folder, "nested_deeply", kind)
    if found.version(python)[:2] == (3, 12) and kind == "sentinel":
        assert notes["counts"]["too_deep"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_increments(python, folder, kind):
    """A sentinel that did not fire in its increment rests again."""
    if not incremental(python):
        pytest.skip("only CPython 3.14.0 to 3.14.4 collects in increments")
    notes = compare(python, folder, "increments", kind)
    assert notes["counts"]["objects"] == 40 * 1000


@pytest.mark.parametrize("kind", KINDS)
def test_greenlets(python, folder, kind):
    """The collection runs on switched stacks, and is left for another one."""
    has = subprocess.run([python, "-c", "import greenlet"],
                         capture_output=True)
    if has.returncode != 0:
        pytest.skip(f"greenlet is not installed for {python}")
    counts = compare(python, folder, "greenlets", kind)["counts"]
    assert counts["objects"] >= 20


@pytest.mark.parametrize("kind", KINDS)
def test_cleared_callbacks_take_everything_back(python, folder, kind):
    counts = compare(python, folder, "callbacks_cleared", kind)["counts"]
    if counts["resting"]:  # ours is there for the stop of a finding alone
        assert counts["lost_stops"] == (kind == "stops")
    else:
        assert not counts["attached"] and counts["lost_stops"] == 1


@pytest.mark.parametrize("kind", ["sentinel", "rest", "saveall"])
def test_a_lost_stop_heals(python, folder, kind):
    counts = compare(python, folder, "lost_stop", kind)["counts"]
    assert counts["lost_stops"] == (counts["unheard"] == 0)
    assert counts["objects"] == 13 * 6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", ["remove_inside", "remove_before_other_guards",
                                      "install_often"])
def test_removal_restores_everything(python, folder, scenario, kind):
    assert compare(python, folder, scenario, kind)["live"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_two_observers(python, folder, kind):
    """As observe_garbage has it: the fallback beside the sentinel.  (Two
    sentinels, which nobody installs, see each other's objects.)"""
    notes = compare(python, folder, "two_hooks", kind)
    assert notes["sentinel beside"]["Node"] == 6
    assert notes["saveall beside"] == {"Node": 6}


def test_errors_of_an_observer_are_unraisable(python, folder):
    for kind in KINDS:
        notes = compare(python, folder, "raising_stop", kind)
        assert notes["unraisable"] == ["ValueError"]


@pytest.mark.parametrize("kind", KINDS)
def test_r1_r2_no_user_code_runs(python, folder, kind):
    """R1, R2: proxies, properties, reprs, hashes, iterators."""
    notes = compare(python, folder, "hostile", kind)
    for seen in (notes["seen"], notes["scanned"]):
        assert seen["Hostile"] == seen["HostileList"] == 10


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_objects(python, folder, kind):
    """A collection does not free them, and does not show them."""
    assert compare(python, folder, "frozen", kind)["seen"] == {"Node": 10}


@pytest.mark.parametrize("kind", KINDS)
def test_somebody_holds_all_objects(python, folder, kind):
    assert compare(python, folder, "all_held", kind)["seen"] \
        == [{"Node": 10}] * 3


@pytest.mark.parametrize("kind", ["sentinel", "saveall"])
def test_r17_ten_million_deep_list(python, folder, kind):
    """R17.  Takes gigabytes and half a minute: on one interpreter."""
    if python != found.pythons()[-1]:
        pytest.skip(f"done with {found.pythons()[-1]}")
    assert compare(python, folder, "long_list", kind)["scanned"] == 10_000_001


@pytest.mark.parametrize("kind", ["sentinel", "saveall"])
def test_r17_million_deep_tuple_on_a_small_stack(python, folder, kind):
    """R17."""
    notes = compare(python, folder, "deep_tuple", kind)
    assert notes["scanned"] == 1_000_001


@pytest.mark.parametrize("kind", KINDS)
def test_each_allocation_fails(python, folder, kind):
    notes = compare(python, folder, "no_memory", kind)
    assert notes["missed"] > 0 and notes["live"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_r11_sub_interpreters(python, folder, kind):
    """R11: a hook of its own in each, removed, left, or at its end."""
    assert compare(python, folder, "sub_interpreters", kind)["seen"] \
        == {"Node": 12}


def test_no_reference_is_lost(python, folder):
    """Exact, where the interpreter counts all references (a debug build)."""
    code = """
import gc, sys
import interceptor_probe as probe

class Node:
    pass

def work(kind):
    probe.install(kind)
    for _ in range(5):
        a, b = Node(), Node()
        a.b, b.a = b, a
        del a, b
        gc.collect()
    probe.remove()
    probe.scan(), probe.frozen(), probe.take()

print(hasattr(sys, "gettotalrefcount"))
if hasattr(sys, "gettotalrefcount"):
    for kind in "sentinel", "saveall":
        totals = [10 ** 9 + i for i in range(8)]  # mortal, each its own
        for i in range(8):
            work(kind)
            gc.collect()
            totals[i] = sys.gettotalrefcount()
        assert totals[-1] == totals[-4], totals
"""
    if run_code(python, folder, code).strip() != "True":
        pytest.skip("only a debug build counts all references")


def test_lists_that_are_not_what_they_seem(python, folder):
    """A walk that cannot be proved gives nothing."""
    code = """
import interceptor_probe as probe
assert probe.read_list("none") == 3
for defect in ("two heads", "no head", "prev", "loop", "null", "no twin"):
    assert probe.read_list(defect) == "bad input", defect
"""
    run_code(python, folder, code)


def test_types_of_garbage_are_noted_or_known_to_be_too_many(python, folder):
    code = """
import interceptor_probe as probe
few = [int, int, list, dict, list, set]
kept, full = probe.type_set(few)
assert len(kept) == 4 and set(kept) == set(few) and not full, kept
many = [type("T", (), {}) for _ in range(1000)]
kept, full = probe.type_set(many)
assert full and set(kept) < set(many), len(kept)
"""
    run_code(python, folder, code)


def run_code(python, folder, code):
    done = subprocess.run(
        [python, "-X", "faulthandler", "-c", code],
        env=found.plain_environment(PYTHONPATH=folder), timeout=SECONDS,
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


SCANS = ["random_graphs", "many_references", "many_hubs", "suspended",
         "kinds_of_cycles", "live_ones", "changes_nothing", "frozen_classes",
         "inside_collections", "no_memory", "half_built", "untracked"]


def run_scan(python, folder, scan):
    done = subprocess.run(
        [python, "-X", "faulthandler", os.path.join(PROBE, "scans.py"), scan],
        env=found.plain_environment(PROBE_DIR=folder), timeout=SECONDS,
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("scan", SCANS)
def test_scan(python, folder, scan):
    run_scan(python, folder, scan)


@pytest.fixture(scope="session")
def folder_of_unknown(python, tmp_path_factory):
    """As if the heads of the generations could not be proved."""
    if found.version(python) < (3, 12):
        pytest.skip("PyUnstable_GC_VisitObjects came with 3.12")
    try:
        return found.probe_folder(
            python, str(tmp_path_factory.getbasetemp() / "probes"),
            "-DCM_GC_HEADS_UNKNOWN")
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("scan", ["random_graphs", "many_references", "suspended",
                                  "live_ones", "changes_nothing", "no_memory"])
def test_scan_of_an_unknown_collector(python, folder_of_unknown, scan):
    run_scan(python, folder_of_unknown, scan)


def test_r16_sentinel_in_an_unknown_collector(python, folder_of_unknown):
    """R16.  It sees all, but users' callbacks may run before it."""
    counts = compare(python, folder_of_unknown, "results",
                     "sentinel")["counts"]
    assert counts["objects"] == 5 * 40 + 2 * 30000
    assert not counts["first"] and not counts["flags"]
