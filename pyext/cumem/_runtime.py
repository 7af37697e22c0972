# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The one session of this interpreter: who wants to know, and how they are told.

The core sees garbage and analyses it; it calls :func:`_deliver` outside the
unreachable phase, when a collection (or a scan) is over.  Observers get their
page in that call; warnings are analysed on a native thread and arrive later.
"""

import atexit
import contextlib
import json
import os
import sys
import threading
import time

# All that runs in the traced program is imported here: the core asks for it in collections, where no
# import is safe, and `__import__` may be the program's own.
from . import (_budget, _core, _driver, _environment, _exhausted, _frameworks, _growth, _jax, _largest, _log,
               _looks, _memory, _recorder, _settings, _steps, _torch)  # fmt: skip
from ._report import CycleReport, give_back, take
from ._version import __version__

GC, SCAN, OOM, EXIT, MANUAL = range(5)

_lock = threading.RLock()
_handles = []
_attached = dict.fromkeys(("oom", "exit", "described", "ran_out", "untold", "scanning"))  # none is


class Handle:
    """Takes back what observe_tensor_cycles() or warn_tensor_cycles() installed.

    Call it, call its ``remove()``, or use it in a ``with`` statement.  Twice is fine.
    What others still observe stays observed.
    """

    def __init__(self, callback, devices, min_bytes, path=None, stacks=True):
        self._callback = callback  # None: a warning handle
        self._devices = devices
        self._min_bytes = min_bytes
        self._path = path
        self._stacks = stacks

    def remove(self):
        """Stop observing; with the last one everything in the process is as it was."""
        with _lock:
            if self in _handles:
                _handles.remove(self)
                _apply()

    __call__ = remove

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def observe_tensor_cycles(callback, *, devices="auto", min_bytes=0):
    """Call `callback` for each collection that found device memory in dead cycles.

    A drop-in for ``torch.utils.viz._cycles.observe_tensor_cycles``, also called
    on out-of-memory and at exit, when a read-only scan finds such cycles.

    Parameters
    ----------
    callback : callable
        Gets one :class:`CycleReport`: a ``str``, the whole HTML page, with
        ``.report``, ``.text`` and ``.save(path)``.  It has run when the statement
        that collected is over, in the thread that collected; its exceptions go
        to ``sys.unraisablehook``.
    devices : "auto", str, int, torch.device, or a list of these
        "auto" is every accelerator; in a process that uses none, "cpu".  A
        finding that lies on others too is told whole.
    min_bytes : int or str
        Findings that free fewer bytes at once there are left out (``"1MiB"``).

    Returns
    -------
    Handle
        ``handle()`` or ``handle.remove()`` takes everything back.

    Raises
    ------
    ValueError
        For a bad device or size; it names the value.
    TypeError
        When `callback` is not callable.
    RuntimeError
        Where this interpreter cannot be observed; it says why.

    Notes
    -----
    The collector's own list of unreachable objects is read from a weak
    reference's callback, before anything is finalized; no second collection is
    made, and no debug flag, profile function or ``gc.garbage`` is touched.
    """
    if not callable(callback):
        raise TypeError(f"callback must be callable, not {type(callback).__name__}")
    import subprocess  # for the drawings: we may be called within another import
    return _add(Handle(callback, _settings.parse_devices(devices), _settings.parse_size(min_bytes)))


def warn_tensor_cycles(*, directory=None, devices="auto", min_bytes="1MiB"):
    """Log a warning for dead cycles that hold device memory, and write the report.

    Growth and memory that ran out are told too.
    ``logging.getLogger("cumem").warning`` gets the summary text, with the path
    of the report (``leak.json``), at a finding's first occurrence and whenever
    its bytes have doubled; after 32 of these several are told together.  Analysis
    and writing happen on a native thread that holds no GIL, and the program's handlers
    are called by a thread that has none of its locks; :func:`flush` waits for both, 5 s
    at most for the handlers.

    Parameters
    ----------
    directory : path, optional
        Where the report is written, under its automatic name; default:
        CUMEM_OUTPUT, else the current directory.
    devices, min_bytes
        As for :func:`observe_tensor_cycles`; default ``"1MiB"``.  All who
        warn share one report: it has the devices of each, and the least size.

    Returns
    -------
    Handle
        ``handle()`` or ``handle.remove()`` takes everything back.

    Raises
    ------
    ValueError
        For a bad device or size, or a directory that is not there; it names the value.
    RuntimeError
        Where this interpreter cannot be observed; it says why.
    """
    path = _environment.report_path() if directory is None else _settings.output_path_in(directory)
    return _add(
        Handle(None, _settings.parse_devices(devices), _settings.parse_size(min_bytes), path)
    )


def find_cycles(*, devices="auto"):
    """What would a collection free now?  Frees nothing, collects nothing.

    Parameters
    ----------
    devices
        As for :func:`observe_tensor_cycles`.

    Returns
    -------
    CycleReport
        Print its ``.text``; ``.save("cycle.html")`` writes the page.  Its
        ``.report["cycles"]`` is empty when no dead cycle holds device memory.

    Raises
    ------
    ValueError
        For a bad device; it names the value.
    RuntimeError
        On a build whose heap cannot be scanned; it says why.

    Notes
    -----
    Reference counts minus internal references, then reachability from what
    stays above zero (the method of CPython's own collector), on a copy of the
    counts.  The pause is that of about one full collection.
    """
    with _lock, _no_collection():
        devices = _settings.parse_devices(devices)
        _prepare()
        try:
            _note_memory(snapshot=True)
            _core.watch(devices, _host_allowed(), True)
            _recorder.seed()
            if not _attached["ran_out"]:
                _note_held()
            event = _core.scan(MANUAL, False)
        finally:
            _recorder.forget()
            _apply()
    return CycleReport(event)


def report_now(look):
    """The document as it is, after `look`; {} where nobody observes."""
    with _lock:
        if not _handles:
            return {}
        _guarded(look)
        return json.loads(_core.document())


def flush(timeout=None):
    """Wait until analysis and writing that are under way are done.

    Parameters
    ----------
    timeout : float, optional
        Seconds; None waits without limit.

    Returns
    -------
    bool
        False when the time was over first, or a handler of the program's logger took 5 s.
    """
    done = _core.flush(-1.0 if timeout is None else float(timeout))
    _core.drain()
    return _log.wait() and done


def status():
    """How this process is observed, and why each part is as it is.

    Returns
    -------
    dict
        ``interceptor`` ("sentinel", "saveall" or "none"), ``why``, ``layouts``,
        ``frameworks``, ``devices``, ``seen`` and ``lost`` (counts),
        ``allocator_hook`` and ``driver`` (each with ``hook``, ``why`` and counts),
        ``looks`` (scans that nobody asked for: count, seconds, longest, skipped
        for want of time, bytes that collections of ours have saved; ``growth``:
        count, seconds and longest of the looks at who holds what grows;
        ``out_of_memory``: the same for when memory ran out, and skipped),
        ``signal`` (CUMEM_SIGNAL), ``report`` (path or None).
    """
    found = _core.status()
    found["looks"].update(growth=_budget.spent(), out_of_memory=_budget.spent_of_memory())
    return found


def _add(handle):
    if sys.is_finalizing():  # nothing would end it
        return handle
    with _lock:
        _handles.append(handle)
        try:
            _apply()
        except BaseException:
            _handles.remove(handle)
            _apply()
            raise
    return handle


def is_warned():
    """Whether somebody wants to hear of what grows, and not of cycles alone."""
    return any(handle._callback is None for handle in _handles)


def _host_allowed():
    return not _settings.is_worker_process()


def _union(devices):
    names = {name for item in devices for name in item.split(",")}
    return ",".join(sorted(names)) or "auto"


def _prepare():
    """What every use needs once: exit, fork, who we are."""
    if not _attached["exit"]:
        atexit.register(_at_exit)
        os.register_at_fork(after_in_child=_in_child)
        _attached["exit"] = True
    if not _attached["described"]:
        _describe()
        _attached["described"] = True


def _describe():
    _core.describe(
        {
            "host": os.uname().nodename,
            "python": sys.version.split()[0].rstrip("+"),
            "cumem": __version__,
            "pid": os.getpid(),
            "rank": _settings.rank(),
            "world_size": _settings.world_size(),
        }
    )
    _core.show_texts(_environment.asked("CUMEM_VALUES"))
    _core.suppressions(_environment.suppression_files())


def _apply():
    """Bring the core in line with the handles."""
    _prepare()
    _core.watch(_union([handle._devices for handle in _handles]), _host_allowed(), False)
    observers = [handle for handle in _handles if handle._callback is not None]
    warners = [handle for handle in _handles if handle._callback is None]
    path = warners[-1]._path if warners else None
    least = min((handle._min_bytes for handle in warners), default=0)
    _core.configure(bool(observers), bool(warners), path, least)
    if _handles:
        _driver.ask()
        stacks = _environment.asked("CUMEM_STACKS") and all(handle._stacks for handle in _handles)
        _core.install(_environment.asked("CUMEM_INTERCEPTOR"), _deliver, stacks)
        _retag()
        _looks.attach() if warners else _looks.detach()
    else:
        _detach()


def _detach(ending=False):
    _looks.detach(ending)
    _steps.detach()
    _recorder.disarm()
    _core.remove(_tensor_types())


def _retag():
    """What did not count before may do so now, with its classes let go of."""
    if hasattr(sys.modules.get("torch"), "compile"):  # torch is whole
        _torch.retag()


def _tensor_types():
    """What the core has tagged: to be taken back."""
    found = _frameworks.tagged_types()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor"):
        found += _torch._tensor_types(torch)
    return found


def _deliver(kind, payload):
    """Called by the core, with the GIL, where Python code may run."""
    if kind == "report":
        _call_observers(payload)
    elif kind in ("finding", "warning"):
        if kind == "finding":
            _note_for_run(b"\0")
        _log.warn(payload.rstrip("\n"))
    elif kind == "notice":
        _notice()
    elif kind == "device":
        _note_device()
    elif kind == "optimizer":
        _guarded(_growth.note_optimizer, payload, is_warned())
    elif kind == "early growth":
        _guarded(_growth.look_early)
    elif kind == "growth":
        _guarded(_growth.look_when_due, payload)
    elif kind == "torch":
        _steps.attach()
    elif kind == "memory":
        with _no_collection():  # the program's finalizers are not to run at the end of an iteration
            _steps.attach()
            _note_memory(snapshot=False)
    elif kind == "out of memory":
        _on_out_of_memory(*payload)
    elif kind == "asked":
        return _answer()
    return None


def _guarded(function, *arguments):
    """Nothing of ours is raised into the program, but what its signals' handlers raise is."""
    try:
        with _no_collection():
            function(*arguments)
    except Exception:
        _core.unraisable(function)


def _call_observers(event):
    """In few functions: with 4 cycles in each iteration, this call is a sixth of the cost."""
    reports = {}  # by the findings in them: those of one event
    try:
        for handle in list(_handles):
            if (callback := handle._callback) is None:
                continue
            try:
                found = _core.event_for(event, handle._devices, handle._min_bytes)
                if found is None:
                    continue
                key = _core.event_key(found)
                if key not in reports:
                    reports[key] = take(found, key)
            except Exception:
                _core.unraisable(callback)
                continue
            try:
                callback(reports[key])
            except BaseException:
                _core.unraisable(callback, True)
    finally:
        for key in list(reports):
            del reports[key]
            give_back(key)


def _notice():
    """torch's accelerator was initialised since: attach what waits for it."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    cuda = getattr(torch, "cuda", None)
    initialized = getattr(cuda, "is_initialized", None)
    if initialized is None or not initialized():
        return
    _core.accelerator()
    _steps.attach()
    _memory.note_backend()
    _memory.note_blocks()
    _recorder.arm(_environment.asked("CUMEM_STACKS"))
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    if attach is not None and not _attached["oom"]:
        _attached["oom"] = True  # torch can only append: ours stays, and is silent without handles
        try:
            attach(_core.out_of_memory)
        except RuntimeError:  # another allocator than torch's own has none
            _core.let_through()


def _note_device():
    """A framework uses a device since."""
    if is_warned():
        _looks.attach()  # now the device's size is known
    _note_memory(snapshot=False)


def _note_memory(snapshot, asked=None):
    """Where the devices' memory is, for the report; `asked`: {index: (bytes that failed, free then)}."""
    try:
        if snapshot:
            _memory.note_pools()
        _core.memory(_memory.rows(snapshot, asked))
    except Exception:
        _core.unraisable(_note_memory)


def _note_held():
    """What no object explains, for the report; after _note_memory()."""
    try:
        _core.held(_memory.pool_libraries())
    except Exception:
        _core.unraisable(_note_held)


def _on_out_of_memory(device, size, total, free):
    """From torch's observer: the allocation failed, the exception is about to be raised."""
    if not _handles:
        return
    ran_out, asked = ("OutOfMemoryError", f"cuda:{device}", size), {device: (size, free)}
    try:
        if _budget.allows("out of memory"):
            with _budget.walk("out of memory"):
                _explain(ran_out, asked)
        else:
            _budget.skip()
            _attached["untold"] = ran_out  # at exit, if the program ends of it
            _guarded(_note_memory, False, asked)
    except Exception:
        _core.unraisable(_on_out_of_memory)


def _explain(ran_out, asked):
    _attached.update(ran_out=True, untold=None)
    _guarded(_note_memory, True, asked)  # before it is told
    with _exhausted_of(*ran_out):
        _guarded(_growth.look_now)
        _scan(OOM, asked)


@contextlib.contextmanager
def _exhausted_of(error, device, asked):
    """That memory ran out, and who holds most of it; with what is found within told in one text."""
    kept = []
    try:
        with _no_collection():
            kept = _largest.holders()
    except Exception:
        _core.unraisable(_exhausted_of)
    told = [(_encodable(way), size) for way, size in kept]
    _core.exhausted(_encodable(error), device, asked, told)
    try:
        yield
    finally:
        _core.exhausted_all()
        _core.drain()


def _encodable(text):
    """A file's name that is no UTF-8 has lone surrogates."""
    return text.encode(errors="replace").decode()


class _no_collection:
    """What a scan asks of torch is thousands of dicts: they are not to have collected what it looks for.

    Functions of the core, since no handler of a signal comes between them and the block.
    """

    __enter__, __exit__ = _core.hold_collections, _core.allow_collections


def _answer():
    """A signal asked for the report; we are at some point of the main thread.  False: not now."""
    if _lock._is_owned() or _attached["scanning"] or not _lock.acquire(blocking=False):
        return False
    _lock.release()  # an observer may wait for a thread that wants it
    if _handles:
        _guarded(_growth.look)
        _looks.answer(lambda: _scan(SCAN))
    return True


def _scan(trigger, asked=None, aloud=True):  # to observers
    _attached["scanning"] = True
    try:
        _scan_now(trigger, asked, aloud)
    finally:
        _attached["scanning"] = False


def _scan_now(trigger, asked, aloud):
    _core.flush(20.0)
    with _no_collection():
        if not asked:  # else it is noted
            _note_memory(snapshot=True)
        _recorder.seed()
        if asked or not _attached["ran_out"]:  # the report is about the moment of the failure
            _note_held()
        event = _core.scan(trigger, True)
        _recorder.forget()
    if aloud and _core.event_key(event):
        _call_observers(event)
    _core.flush(20.0)
    _core.drain()


def _at_exit():
    _close()
    _log.wait()


def _close():
    with _lock:
        if not _handles:
            return
    try:  # without the lock: an observer may wait for a thread that wants it
        cause = _cause()
        with _exhausted_of(*cause) if cause and "torch" in sys.modules else contextlib.nullcontext():
            _guarded(_growth.look_now, True)
            _scan(OOM if cause is not None else EXIT)
        if (report := _core.close()) is not None:
            _note_for_run(os.fsencode(report))
    except Exception:
        _core.unraisable(_close)
    finally:
        with _lock:
            _handles.clear()
            _detach(ending=True)


def _cause():
    """(class, device, bytes) of what ended the program, where that is memory, and not told yet."""
    untold = _attached["untold"]
    if _attached["ran_out"] and untold is None:
        return None
    try:
        cause = _exhausted.cause()
    except Exception:  # the report is written without it
        _core.unraisable(_exhausted.cause)
        return None
    if cause is None:
        return None
    _attached["ran_out"] = False  # what is held now is of this failure
    return untold if untold and untold[0] == cause[0] else (cause[0], "", cause[1])


_BEGAN = time.monotonic_ns()  # a process that becomes another program keeps its number


def _note_for_run(note):
    """Tell ``cumem run`` of a finding that is told, by a zero, and at exit of the report."""
    folder = os.environ.get("CUMEM_RUN_NOTES")
    if folder:
        try:
            with open(os.path.join(folder, f"{os.getpid()}-{_BEGAN}"), "ab") as file:
                file.write(note)
        except OSError:
            _core.let_through()


def _in_child():
    """A forked child is silent: its hooks are off, the parent's report is the parent's."""
    if not _lock._is_owned():  # another thread's, which is not here to give it back
        _lock._at_fork_reinit()
    _handles.clear()
    _attached["scanning"] = None
    _log.begin_anew()
    _core.forked()
