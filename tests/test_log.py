# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Warnings on the program's logger: they come in the midst of anything, and take no lock that is held there."""

import subprocess
import sys

import pytest

from process import HELD

pytest.importorskip("torch")

BEGIN = """
import gc, logging, logging.handlers, os, queue, signal, sys, threading, time
import torch
import cumem

signal.alarm(60)  # who waits for ever is ended

class Node:
    pass

def leave(bytes):
    node = Node()
    node.me, node.tensor = node, torch.zeros(bytes // 4)
    del node
    gc.collect()

def run_until_it_is_told():
    # analysed and written: told by then, or soon, between two lines of this loop
    while not any(name.endswith(".json") for name in os.listdir(".")):
        time.sleep(0.01)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass

said = []

class Keep(logging.Handler):
    def emit(self, record):
        said.append((record.getMessage(), threading.get_ident() == threading.main_thread().ident,
                     record.threadName))

def observe(handler):
    logging.getLogger("cumem").addHandler(handler)
    return cumem.warn_tensor_cycles(devices="cpu", min_bytes=0)
"""


def run(body, tmp_path):
    done = subprocess.run([sys.executable, "-c", BEGIN + body], cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_handler_may_take_the_lock_that_its_thread_has(tmp_path):
    """As queue.Queue.put() does below logging.handlers.QueueHandler: it hung for ever."""
    run("""
lines = queue.Queue()
with observe(logging.handlers.QueueHandler(lines)):
    with lines.mutex:
        leave(1 << 20)
        run_until_it_is_told()
    assert cumem.flush()
    assert "DEAD CYCLE" in lines.get(timeout=10).getMessage()
""", tmp_path)


def test_what_is_said_is_said_once_and_in_order(tmp_path):
    run("""
with observe(Keep()):
    leave(1 << 20)
    assert cumem.flush()
    assert len(said) == 1 and "1.0 MiB" in said[0][0], said
    node = type("Other", (), {})()
    node.again, node.tensor = node, torch.zeros(1 << 20)
    del node
    gc.collect()
    assert cumem.flush()
assert len(said) == 2 and "4.0 MiB" in said[1][0], said
assert not any(main for _, main, _ in said)
names = {name for *_, name in said}
assert names == {"cumem"}, names
while threading.active_count() > 1:  # as a program waits for its workers
    time.sleep(0.01)
""", tmp_path)


def test_flush_does_not_wait_for_ever(tmp_path):
    run("""
lock = threading.Lock()
class Locked(Keep):
    def emit(self, record):
        with lock:
            super().emit(record)
with observe(Locked()):
    with lock:
        leave(1 << 20)
        assert not cumem.flush()
    assert cumem.flush() and len(said) == 1
""", tmp_path)


def test_a_handler_may_fail_or_call_us(tmp_path):
    done = run("""
class Bad(Keep):
    def emit(self, record):
        super().emit(record)
        cumem.flush()
        raise ValueError("of the handler")
with observe(Bad()):
    leave(1 << 20)
    assert cumem.flush()
    logging.getLogger("cumem").addHandler(Keep())
print(len(said))
""", tmp_path)
    assert done.stdout == "1\n" and "of the handler" in done.stderr


def test_the_exit_says_it(tmp_path):
    done = run("""
observe(logging.StreamHandler(sys.stdout))
node = Node()
node.me, node.tensor = node, torch.zeros(1 << 18)
del node
""", tmp_path)
    assert "DEAD CYCLE" in done.stdout


def test_a_child_that_was_forked_meanwhile_ends(tmp_path):
    run("""
lock = threading.Lock()
class Locked(Keep):
    def emit(self, record):
        with lock:
            super().emit(record)
handle = observe(Locked())
with lock:
    leave(1 << 20)
    run_until_it_is_told()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(not cumem.flush())
    assert os.waitpid(child, 0)[1] == 0
handle.remove()
""", tmp_path)


def test_a_signal_is_answered_where_its_thread_has_a_handlers_lock(tmp_path):
    """As in the midst of queue.Queue.put(): the answer hung for ever."""
    run("""
os.environ["CUMEM_SIGNAL"] = "USR2"
lines = queue.Queue()
with observe(logging.handlers.QueueHandler(lines)):
    with lines.mutex:
        os.kill(os.getpid(), signal.SIGUSR2)
        run_until_it_is_told()
    assert cumem.flush()
    assert "asked by a signal: " in lines.get(timeout=10).getMessage()
""", tmp_path)


def test_who_finds_needs_no_lock_of_loggings(tmp_path):
    """Within logging.config.dictConfig() another thread has it, and waits for that of the handler we are in."""
    done = run(HELD + """
with observe(Keep()):
    with held_by_another_thread(logging._lock):
        leave(1 << 20)
        run_until_it_is_told()
    assert cumem.flush() and len(said) == 1, said

logging.getLogger("cumem").handlers.clear()
os.environ["CUMEM_WARN_CYCLES"], os.environ["CUMEM_MIN_BYTES"] = "1", "0"
import cumem._start
cumem._start.main()  # ours is the only handler now
with held_by_another_thread(logging._lock):
    leave(1 << 22)
    assert cumem.flush()
for level in (logging.ERROR, logging.WARNING):  # it says what logging would
    logging.getLogger("cumem").setLevel(level)
    leave(3 << 22 if level == logging.ERROR else 1 << 26)
    assert cumem.flush()
""", tmp_path)
    assert "4.0 MiB" in done.stderr and "64 MiB" in done.stderr and "12 MiB" not in done.stderr, done.stderr


@pytest.mark.parametrize("does", [
    "logging.config.dictConfig({'version': 1, 'root': {'level': 'INFO'}})",
    "logging.basicConfig(level=logging.ERROR)", "logging.disable()",
    "logging.disable(logging.WARNING); logging.getLogger('cumem').addHandler(logging.NullHandler())"])
def test_what_is_done_to_all_loggers_hides_no_finding(does, tmp_path):
    """dictConfig() disables whom it does not name: nothing was said for the whole run."""
    done = run(f"""
import logging.config
os.environ["CUMEM_WARN_CYCLES"], os.environ["CUMEM_MIN_BYTES"] = "1", "0"
import cumem._start
cumem._start.main()
{does}
leave(1 << 22)
assert cumem.flush()
""", tmp_path)
    assert "4.0 MiB" in done.stderr, done.stderr
