# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A child that is forked while another thread is within cumem: it goes on, and ends, as without."""

import pytest

from process import HELD, NODES, run_ok

# In the child a signal ends what hangs; a child that is whole leaves by Python's own exit.
FORKS = NODES + HELD + """
import signal
def fork(child):
    if (pid := os.fork()) == 0:
        signal.alarm(20)
        child()
        sys.exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

CHILDREN = {
    "only ends": "pass",
    "takes its handle back": "handle()",
    "asks": "cumem.growth(), cumem.status(), cumem.flush()",
    "would observe": """
    try:
        cumem.observe_tensor_cycles(bool)
    except RuntimeError as error:
        assert "silent" in str(error)
    else:
        raise SystemExit(8)""",
}


@pytest.mark.parametrize("child", CHILDREN)
def test_another_thread_changes_who_observes(tmp_path, child):
    run_ok(FORKS + f"""
from cumem import _runtime
def child():
    {CHILDREN[child]}
handle = cumem.warn_tensor_cycles(directory=".")
with held_by_another_thread(_runtime._lock):
    code = fork(child)
assert code == 7, code
handle()
""", cwd=tmp_path)


def test_the_forking_thread_keeps_what_it_has(tmp_path):
    run_ok(FORKS + """
from cumem import _runtime
def child():
    assert _runtime._lock._is_owned()
handle = cumem.warn_tensor_cycles(directory=".")
with _runtime._lock:
    assert fork(child) == 7
""", cwd=tmp_path)
