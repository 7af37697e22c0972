# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Scans that nobody asked for, collections that they make, and the signal that asks for a report."""

import pytest

from process import NODES, run, run_ok

START = NODES + """
import signal, time
from cumem import _core, _looks
MIB = 1 << 20
_looks._LEAST_BYTES, _looks._device_bytes = MIB, lambda: 0

def often():
    _looks._RUN_FOR_LOOK = 1

def looks():
    return cumem.status()["looks"]

def report():
    return json.load(open(_core.close()))

def leak(count, size=MIB // 4):
    for _ in range(count):
        make_pair(size)
        time.sleep(0.001)

def leak_until(enough, least=40, step=10):  # a slow machine's scans are affordable later; how many
    made = 0
    while made < least or made < 1000 and not enough():
        leak(step)
        made += step
    return made
"""


def test_a_program_without_collections_is_looked_at(tmp_path):
    run_ok(START + """
often()
gc.disable()
with cumem.warn_tensor_cycles(directory="."):
    made = leak_until(lambda: looks()["count"] >= 2)
    assert looks()["count"] >= 2, looks()
    cycle, = report()["cycles"]
    assert cycle["trigger"] == "scan" and 1 < cycle["count"] <= made, cycle
    assert looks()["dead_bytes"] >= MIB and not gc.isenabled()
    gc.collect()
    cycle, = report()["cycles"]  # the same cycles, not the same again
    assert cycle["count"] == made and cycle["peak_bytes"] == made * MIB, cycle
""", cwd=tmp_path)


def test_it_goes_on_after_it_was_taken_back(tmp_path):
    run_ok(START + """
often()
gc.disable()
class Leaver(Node):
    def __del__(self):
        handle.remove()  # within a collection
for _ in range(3):
    handle = cumem.warn_tensor_cycles(directory=".")
    before = looks()["count"]
    for _ in range(100):  # as long as the last look took, none is had
        leak(10)
        if looks()["count"] > before:
            break
    assert looks()["count"] > before, looks()
    node = Leaver()
    node.link = node
    del node
    gc.collect()
    assert cumem.status()["interceptor"] == "none"
""", cwd=tmp_path)


def test_never_more_than_its_share_of_the_time(tmp_path):
    run_ok(START + """
begun = time.monotonic()
gc.disable()
with cumem.warn_tensor_cycles(directory="."):
    while time.monotonic() - begun < 8:
        torch.zeros(MIB)
    found, took = looks(), time.monotonic() - begun
    assert found["count"] >= 1 and found["skipped"] >= 1, found
    assert found["longest"] <= found["seconds"] <= took / 100 + found["longest"], (found, took)
""", cwd=tmp_path)


def test_nothing_is_looked_at_when_nobody_warns(tmp_path):
    run_ok(START + """
often()
leak(10)
with cumem.observe_tensor_cycles(print):
    leak(10)
assert looks()["count"] == looks()["skipped"] == looks()["after_bytes"] == 0, looks()
with cumem.warn_tensor_cycles(directory="."):
    assert looks()["after_bytes"] == MIB
before = looks()["count"]
leak(10)
assert looks()["count"] == before and looks()["after_bytes"] == 0
""", cwd=tmp_path)


def test_after_so_many_iterations(tmp_path):
    run_ok(START + """
often()
_looks._LEAST_BYTES = 1 << 60
gc.disable()
with cumem.warn_tensor_cycles(directory="."):
    for i in range(1, 21):
        make_pair(MIB // 4)
        cumem.step()
        time.sleep(0.2)
        assert looks()["count"] <= i // 5, (i, looks())
    assert looks()["count"] >= 2, looks()
    cycle, = report()["cycles"]
    assert cycle["trigger"] == "scan", cycle
""", cwd=tmp_path, CUMEM_LOOK_EVERY=5)


@pytest.mark.parametrize("enabled", [True, False])
def test_it_collects_where_that_is_asked_for(tmp_path, enabled):
    run_ok(START + f"""
often()
_looks._LEAST_BYTES = 6 * MIB  # so that each look finds more than 4 MiB: none tells, all collect
gc.collect()
gc.enable() if {enabled} else gc.disable()
gc.set_threshold(1_000_000)
with cumem.warn_tensor_cycles(directory="."):
    made = leak_until(lambda: looks()["collections"] >= 2)
    found = looks()
    assert found["collections"] >= 2 and found["saved_bytes"] >= 8 * MIB, found
    live = cumem.status()["allocator_hook"]["host"]["live_bytes"]
    assert live <= made * MIB - found["saved_bytes"], (live, found)
    assert gc.isenabled() is {enabled}
    leak(1)  # perhaps all others were collected
    made += 1
    gc.collect()
    cycle, = report()["cycles"]
    assert cycle["count"] == made and cycle["trigger"] == "gc", cycle
    rows = report()["collections"]
    assert sum(row["device_bytes_freed"] for row in rows) >= (made - 10) * MIB, rows
""", cwd=tmp_path, CUMEM_AUTO_COLLECT="4MiB")


def test_the_report_says_what_looks_cost_and_what_they_saved(tmp_path):
    run_ok(START + """
often()
gc.disable()
began = time.monotonic()
with cumem.warn_tensor_cycles(directory="."):
    leak_until(lambda: looks()["collections"] >= 2, 0, 1)
    cumem.growth()  # looks at what grows
    document, took = report(), time.monotonic() - began
    known = looks()
    told = document["looks"]
    assert document["collector"].get("off"), "ours had switched it on for its time"
    assert {name: told[name] for name in ("count", "skipped", "collections", "saved_bytes")} \\
        == {name: known[name] for name in ("count", "skipped", "collections", "saved_bytes")}, told
    assert told["saved_bytes"] >= 8 * MIB, told
    assert told["growth_count"] == known["growth"]["count"] >= 1, told
    for name, seconds in [("duration_us", known["seconds"]), ("longest_us", known["longest"]),
                          ("growth_duration_us", known["growth"]["seconds"])]:
        assert abs(told[name] - seconds * 1e6) <= 1, (name, told)
    assert 0 < told["duration_us"] < told["run_us"] <= took * 1e6, (told, took)
    text = _core.text(json.dumps(document).encode(), False, 0)
    assert f" by {told['collections']} collections of CUMEM_AUTO_COLLECT" in text, text
    page = _core.page(json.dumps(document).encode())
    assert f"<p>Looks: {told['count']} scan" in page and " % of the run" in page
    assert f"<p>CUMEM_AUTO_COLLECT: {told['collections']} collections gave back " in page
    assert "Automatic collection is off. Leave CUMEM_AUTO_COLLECT set until" in page
""", cwd=tmp_path, CUMEM_AUTO_COLLECT="4MiB")


def test_never_within_a_collection_and_whatever_the_program_does(tmp_path):
    run_ok(START + """
often()
class Finalized(Node):
    def __del__(self):
        for _ in range(3):
            torch.zeros(MIB)  # enough for a look, in the collection
            sum(range(1000))
def hostile(phase, info):
    torch.zeros(MIB)
    raise RuntimeError("a callback of the program's")
sys.unraisablehook = lambda args: None
with cumem.warn_tensor_cycles(directory="."):
    gc.callbacks.append(hostile)
    for _ in range(20):
        node = Finalized(torch.zeros(MIB // 4))
        node.link = node
        del node
        gc.collect()
    gc.callbacks.remove(hostile)
    del gc.collect  # what the program calls so is its own affair
    leak(10)
    assert looks()["count"] >= 1, looks()
    assert cumem.status()["lost"]["bad_walks"] == 0, cumem.status()
""", cwd=tmp_path)


def test_threads_and_a_forked_child(tmp_path):
    run_ok(START + """
import threading
often()
gc.disable()
with cumem.warn_tensor_cycles(directory="."):
    threads = [threading.Thread(target=leak, args=(30,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sum(range(1000))
    before = looks()["count"]
    assert before >= 1, looks()
    child = os.fork()
    if child == 0:
        leak(30)
        os._exit(0 if looks()["count"] == before else 1)
    assert os.waitpid(child, 0)[1] == 0
""", cwd=tmp_path)


def test_what_cannot_be_read_is_said_once(tmp_path):
    done = run_ok(NODES + """
import logging
logging.basicConfig(format="%(message)s", stream=sys.stdout)
for _ in range(3):
    with cumem.warn_tensor_cycles(directory="."):
        pass
looks = cumem.status()["looks"]
assert looks["every"] == looks["collect_above"] == 0, looks
""", cwd=tmp_path, CUMEM_LOOK_EVERY="often", CUMEM_AUTO_COLLECT="much", CUMEM_SIGNAL="KILL")
    lines = done.out.splitlines()
    assert len(lines) == 3, lines
    assert "CUMEM_LOOK_EVERY='often'" in lines[0] and "CUMEM_AUTO_COLLECT='much'" in lines[1]
    assert "CUMEM_SIGNAL='KILL'" in lines[2] and "USR2" in lines[2], lines


@pytest.mark.parametrize("value", ["0", "-3", "1e3", "99999999999", "x"])
def test_no_number_of_iterations(value):
    from cumem import _looks

    with pytest.raises(ValueError, match=value):
        _looks.parse_count(value)


def test_names_of_signals():
    import signal

    from cumem import _looks

    for value in ("USR2", "usr2", "SIGUSR2", str(int(signal.SIGUSR2)), " USR2 "):
        assert _looks.parse_signal(value) == signal.SIGUSR2
    assert _looks.parse_signal(str(int(signal.SIGRTMIN) + 3)) == signal.SIGRTMIN + 3
    for value in ("KILL", "9", "SIGSEGV", "INT", "CHLD", "USR3", "-1", "99", "USR2 USR1"):
        with pytest.raises(ValueError, match=value):
            _looks.parse_signal(value)


SIGNAL = START + """
def ask(number=signal.SIGUSR2):
    before = cumem.status()["signal"]["answered"]
    os.kill(os.getpid(), number)
    limit = time.monotonic() + 60
    while cumem.status()["signal"]["answered"] == before and time.monotonic() < limit:
        pass
    assert cumem.status()["signal"]["answered"] == before + 1, cumem.status()["signal"]
    assert cumem.flush()  # the program's handlers are called soon, by another thread
"""


def test_a_signal_asks_for_the_report(tmp_path):
    done = run_ok(SIGNAL + """
import logging
logging.basicConfig(format="%(message)s", stream=sys.stdout)
gc.disable()
with cumem.warn_tensor_cycles(directory=".", min_bytes="1GiB"):
    assert cumem.status()["signal"]["state"] == "heard", cumem.status()["signal"]
    ask()  # in a loop that makes no tensor
    assert report()["cycles"] == []  # written all the same: one who asks wants an answer
    assert cumem.status()["looks"]["growth"]["count"] == 1
    make_pair(MIB // 4)
    ask()
    cycle, = report()["cycles"]
    assert cycle["count"] == 1 and cycle["trigger"] == "scan", cycle
    make_pair(MIB // 4)
    ask()
    assert report()["cycles"][0]["count"] == 2
    signal.signal(signal.SIGUSR2, lambda *_: print("theirs", flush=True))  # it comes later: it wins
    os.kill(os.getpid(), signal.SIGUSR2)
    sum(range(1000))
    assert cumem.status()["signal"]["state"] == "the program has taken it"
os.kill(os.getpid(), signal.SIGUSR2)  # and it is still theirs
""", cwd=tmp_path, CUMEM_SIGNAL="USR2")
    lines = done.out.splitlines()
    assert all(line.startswith("cumem: asked by a signal: ") and "leak-" in line
               for line in lines[:3]), lines
    assert lines[3:] == ["theirs", "theirs"], lines


def test_a_programs_own_handler_is_left_alone(tmp_path):
    done = run_ok(SIGNAL + """
import logging
logging.basicConfig(format="%(message)s", stream=sys.stdout)
signal.signal(signal.SIGUSR2, lambda *_: print("theirs", flush=True))
for _ in range(2):
    with cumem.warn_tensor_cycles(directory="."):
        assert cumem.status()["signal"]["state"] == "not asked for"
        os.kill(os.getpid(), signal.SIGUSR2)
""", cwd=tmp_path, CUMEM_SIGNAL="12")
    assert done.out.splitlines() == [
        "cumem: CUMEM_SIGNAL=SIGUSR2 is not used: the program has a handler for it",
        "theirs", "theirs"], done.out


def test_the_signal_is_as_before_afterwards(tmp_path):
    assert run(SIGNAL + """
with cumem.warn_tensor_cycles(directory="."):
    ask()
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGUSR2)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGUSR2  # as if we had not been here
    sys.stdout.write("asked ")
    sys.stdout.flush()
os.kill(os.getpid(), signal.SIGUSR2)
""", cwd=tmp_path, CUMEM_SIGNAL="USR2").code == -12


def test_many_signals_at_any_moment(tmp_path):
    run_ok(SIGNAL + """
import threading
often()
with cumem.warn_tensor_cycles(directory=".", min_bytes="1GiB"):
    over = threading.Event()
    def storm():
        while not over.is_set():
            os.kill(os.getpid(), signal.SIGUSR2)
            time.sleep(0.003)
    thread = threading.Thread(target=storm)
    thread.start()
    for _ in range(20):
        leak(5)
        gc.collect()
        assert cumem.find_cycles().report["cycles"] == []
        time.sleep(0.01)
    over.set()
    thread.join()
    ask()
    assert report()["cycles"][0]["count"] >= 100
""", cwd=tmp_path, CUMEM_SIGNAL="USR2")


def test_ctrl_c_while_it_answers_is_the_programs(tmp_path):
    run_ok(SIGNAL + """
from cumem import _runtime
def scan(*_):
    signal.raise_signal(signal.SIGINT)
    sum(range(1000))
_runtime._scan_now = scan
with cumem.warn_tensor_cycles(directory="."):
    try:
        os.kill(os.getpid(), signal.SIGUSR2)
        for _ in range(100):
            time.sleep(0.1)
    except KeyboardInterrupt:
        print("mine")
    else:
        raise SystemExit("it was swallowed")
    del _runtime._scan_now
    _runtime._scan_now = lambda *_: None
""", cwd=tmp_path, CUMEM_SIGNAL="USR2")


def test_the_report_knows_that_the_program_switched_collections_off(tmp_path):
    run_ok(SIGNAL + """
def off():
    return report().get("collector", {}).get("off", False)
with cumem.warn_tensor_cycles(directory=".", min_bytes="1GiB"):
    cumem.step()
    ask()
    assert off() is False
    gc.disable()
    cumem.step()
    ask()  # our own switching it off for a moment is another matter
    assert off() is True
    gc.enable()
    gc.collect()
    ask()
    assert off() is False
""", cwd=tmp_path, CUMEM_SIGNAL="USR2")
