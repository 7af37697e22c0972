# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Warnings, on the program's logger, from a thread that has none of the program's locks.

They come from a collection, or between any two lines: the thread they come in may be in the midst of
``queue.Queue.put()``, whose lock a ``logging.handlers.QueueHandler`` takes again and then waits for ever.
The thread lives as long as there is something to say; `threading` is not asked to start it, which has locks too.
"""

import _thread
import collections
import logging
import sys
import threading

from . import _core, _start

LONGEST_WAIT = 5.0  # seconds: a handler may wait for who waits for us

_waiting = collections.deque()
_saying = _thread.allocate_lock()
_sayer = None  # the thread that says them


def warn(text):
    """Have the program's handlers get `text`: now where they are ours alone, else soon."""
    logger = logging.Logger.manager.loggerDict.get("cumem")  # getLogger() takes a lock of logging's
    if _is_ours(logger):
        _say_ourselves(logger, text)
        return
    _waiting.append(text)
    if _saying.acquire(blocking=False):
        try:
            _thread.start_new_thread(_be_a_thread, ())
        except RuntimeError:  # no threads here, or none any more
            _core.let_through()
            _say_all()


def wait():
    """Until all is said, but not for long; False: it is not."""
    if _sayer == _thread.get_ident():
        return False
    done = _saying.acquire(timeout=LONGEST_WAIT)
    if done:
        _saying.release()
    return done


def begin_anew():
    """In a forked child, which has not the thread: what waits is the parent's to say."""
    global _saying, _sayer
    _saying, _sayer = _thread.allocate_lock(), None
    _waiting.clear()


def _is_ours(logger):
    """Whether nobody but us has a part in it, and none of its locks is needed."""
    return (
        type(logger) is logging.Logger
        and not logger.propagate
        and not logger.filters
        and bool(logger.handlers)  # else logging has one of last resort
        and all(type(handler) is _start._OwnHandler for handler in logger.handlers)
    )


def _say_ourselves(logger, text):
    """On standard error, unless the level of this very logger says no.

    What the program does to all loggers was not meant for what CUMEM_WARN_CYCLES asks for: dictConfig() disables
    those that it does not name, ``basicConfig(level=ERROR)`` and ``logging.disable()`` are there against chatter.
    """
    if logger.level > logging.WARNING:
        return
    record = logging.LogRecord("cumem", logging.WARNING, __file__, 0, text, (), None)
    if logger.filters and not logger.filter(record):  # none where nobody but us has a part in it
        return
    for handler in logger.handlers:
        if type(handler) is _start._OwnHandler and handler.level <= record.levelno:
            handler.emit(record)


def _say(text):
    logger = logging.getLogger("cumem")
    if logger.isEnabledFor(logging.WARNING):
        logger.warning("%s", text)
    else:
        _say_ourselves(logger, text)


def _be_a_thread():
    threading.current_thread().name = "cumem"  # in the records
    try:
        _say_all()
    finally:
        if sys.version_info < (3, 13):  # counted for ever where `threading` did not start it
            with threading._active_limbo_lock:
                threading._active.pop(_thread.get_ident(), None)


def _say_all():
    global _sayer
    more = True
    while more:
        _sayer = _thread.get_ident()
        try:
            while _waiting:
                _say(_waiting.popleft())
        except Exception:
            _core.let_through()
            _core.unraisable(_say_all)
        finally:
            _sayer = None
            _saying.release()
        more = bool(_waiting) and _saying.acquire(blocking=False)
