# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What a handler of the program's signals raises reaches the program, whatever of ours runs just then;
what ours raises does not."""

import pytest

from process import NODES, run_ok

# `inside` stands for a function of ours: a signal comes while it runs.
PROGRAM = NODES + """
import signal, traceback
from cumem import _growth, _memory, _modules, _report, _runtime
unraisable = []
sys.unraisablehook = lambda args: unraisable.append(args.exc_value)
class Alarm(TimeoutError):
    pass
def plain(number, frame):
    raise Alarm(number)
def unused(number, frame):
    del number, frame
    raise Alarm
def once(number, frame):
    signal.signal(number, signal.SIG_DFL)
    raise Alarm
def through(reason, *rest):
    raise Alarm(reason)
class Guard:
    def __call__(self, number, frame):
        self.tell("late")
    def tell(self, text):
        raise Alarm(text)
def of_torch(number, frame):  # as the handler of torch's data loader
    raise RuntimeError("a worker died")
def end(number, frame):
    sys.exit(3)
def receive(kind=signal.SIGALRM):
    signal.raise_signal(kind)
    sum(range(1000))
def reaches(action, error, after=lambda: None):
    times = []
    def inside(*args, **keywords):
        times.append(len(unraisable))
        receive()
    try:
        with_inside(action, inside)
        for _ in range(100):
            pass
    except error as raised:
        names = [row.filename for row in traceback.extract_tb(raised.__traceback__)]
        kept = raised
    else:
        raise SystemExit(f"swallowed: {times} {unraisable}")
    assert times == [0] and unraisable == [], (times, unraisable)
    return names
def with_inside(action, inside):
    module, name = place
    before = getattr(module, name)
    setattr(module, name, inside)
    try:
        action()
    finally:
        setattr(module, name, before)
def collect():
    make_pair(1 << 18)
    gc.collect()
"""

HANDLERS = {
    "a function": ("plain", "Alarm"),
    "one that lets go of its arguments": ("unused", "Alarm"),
    "one that is replaced": ("once", "Alarm"),
    "one with an argument of its own": ("__import__('functools').partial(through, 'late')", "Alarm"),
    "an object": ("Guard()", "Alarm"),
    "a method": ("Guard().__call__", "Alarm"),
    "a lambda": ("lambda *rest: plain(*rest)", "Alarm"),
    "of a library": ("of_torch", "RuntimeError"),
    "the end": ("end", "SystemExit"),
    "Ctrl-C": ("signal.default_int_handler", "KeyboardInterrupt"),
}


@pytest.mark.parametrize("handler", HANDLERS)
def test_in_a_collection(tmp_path, handler):
    code, error = HANDLERS[handler]
    run_ok(PROGRAM + f"""
signal.signal(signal.SIGALRM, {code})
handle = cumem.observe_tensor_cycles(bool)
gc.collect()
place = _runtime, "take"
names = reaches(collect, {error})
assert not [name for name in names if "cumem" in name], names
signal.signal(signal.SIGALRM, signal.SIG_IGN)
pages = []
cumem.observe_tensor_cycles(pages.append)
collect()
assert len(pages) == 1 and gc.isenabled()
""", cwd=tmp_path)


@pytest.mark.parametrize("handler", ["a function", "the end", "Ctrl-C"])
def test_in_an_observer(tmp_path, handler):
    code, error = HANDLERS[handler]
    run_ok(PROGRAM + f"""
signal.signal(signal.SIGALRM, {code})
def observe(page):
    receive()
cumem.observe_tensor_cycles(observe)
try:
    collect()
    sum(range(1000))
except {error} as raised:
    names = [row.name for row in traceback.extract_tb(raised.__traceback__)]
else:
    raise SystemExit("swallowed")
assert unraisable == [] and "observe" in names and "_call_observer" not in names, names
""", cwd=tmp_path)


@pytest.mark.parametrize("error", ["ValueError", "SystemExit", "GeneratorExit", "TimeoutError"])
def test_what_an_observer_raises_stays_unraisable(tmp_path, error):
    run_ok(PROGRAM + f"""
signal.signal(signal.SIGALRM, plain)
def fail(page):
    raise {error}
cumem.observe_tensor_cycles(fail)
collect()
sum(range(1000))
assert [type(error) for error in unraisable] == [{error}], unraisable
""", cwd=tmp_path)


PLACES = {  # a function of ours, and what the program does when it runs
    "at an optimizer's step": ("_growth, 'note_optimizer'", """
w = torch.nn.Parameter(torch.ones(4)); o = torch.optim.SGD([w])
def action(): w.sum().backward(); o.step()"""),
    "as memory is asked for": ("_runtime, '_note_memory'", """
def action(): _runtime._core.out_of_memory(0, 1, 2, 3)"""),
    "as memory runs out": ("_growth, 'look_now'", """
def action(): _runtime._core.out_of_memory(0, 1, 2, 3)"""),
    "in a question": ("_growth, 'look'", """
def action(): cumem.growth()"""),
    "in a scan": ("_runtime, '_note_held'", """
def action(): cumem.find_cycles()"""),
    "as settings are read": ("os.path, 'abspath'", """
handle()
def action(): cumem.warn_tensor_cycles()"""),
    "as a page is drawn": ("__import__('subprocess'), 'run'", """
handle(); cumem.observe_tensor_cycles(bool)
action = collect"""),
}


@pytest.mark.parametrize("handler", ["a function", "Ctrl-C"])
@pytest.mark.parametrize("where", PLACES)
def test_elsewhere(tmp_path, where, handler):
    code, error = HANDLERS[handler]
    place, action = PLACES[where]
    run_ok(PROGRAM + f"""
signal.signal(signal.SIGALRM, {code})
handle = cumem.warn_tensor_cycles(directory=".", min_bytes="1GiB")
gc.collect()
{action}
place = {place}
reaches(action, {error})
assert gc.isenabled()
""", cwd=tmp_path)


def test_as_torch_is_learnt(tmp_path):
    run_ok(PROGRAM + """
from cumem import _torch
signal.signal(signal.SIGALRM, plain)
place = _torch, "_probe_nodes"
gc.disable()  # a collection would try again, and the alarm come a second time
reaches(lambda: cumem.observe_tensor_cycles(bool), Alarm)
gc.enable()
cumem.observe_tensor_cycles(bool)
gc.collect()
assert cumem.status()["frameworks"]["torch"] == "struct layout", cumem.status()["frameworks"]
""", cwd=tmp_path)


@pytest.mark.parametrize("place", ["_runtime, 'take'", "_runtime._core, 'event_for'"])
def test_what_ours_raises_is_never_the_programs(tmp_path, place):
    run_ok(PROGRAM + f"""
signal.signal(signal.SIGALRM, plain)
handle = cumem.observe_tensor_cycles(bool)
place = {place}
def inside(*args):
    raise Alarm
with_inside(collect, inside)
sum(range(1000))
assert len(unraisable) == 1 and type(unraisable[0]) is Alarm, unraisable
""", cwd=tmp_path)


def test_nothing_of_ours_is_kept_alive(tmp_path):
    run_ok(PROGRAM + """
import weakref
signal.signal(signal.SIGALRM, plain)
handle = cumem.observe_tensor_cycles(bool)
gc.collect()
references = []
def take(*args):
    mine = Node()
    references.append(weakref.ref(mine))
    receive()
take = type(take)(take.__code__, {**globals(), "__name__": "cumem._test"})
_runtime.take = take
try:
    collect()
    sum(range(1000))
except Alarm as raised:
    kept = raised
assert [reference() for reference in references] == [None]
""", cwd=tmp_path)


def test_in_another_thread_it_is_that_threads(tmp_path):
    run_ok(PROGRAM + """
import ctypes, threading
raised = []
def inside(*args):
    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_exception(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(SystemExit))
    sum(range(1000))
def work():
    try:
        collect()
        sum(range(1000))
    except SystemExit as error:
        raised.append(error)
handle = cumem.observe_tensor_cycles(bool)
gc.collect()
place = _runtime, "take"
thread = threading.Thread(target=lambda: with_inside(work, inside))
thread.start(); thread.join()
assert len(raised) == 1 and unraisable == [], (raised, unraisable)
""", cwd=tmp_path)


def test_at_exit_all_is_taken_back(tmp_path):
    run_ok(PROGRAM + """
import atexit
signal.signal(signal.SIGALRM, plain)
sys.stderr = open(os.devnull, "w")
def look(*args):
    receive()
atexit.register(lambda: os._exit(0 if cumem.status()["interceptor"] == "none" and not _runtime._handles else 5))
handle = cumem.warn_tensor_cycles(directory=".")
_growth.look_now = look
""", cwd=tmp_path)
