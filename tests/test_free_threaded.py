# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""R19: on a free-threaded CPython cumem declines, in words, and changes nothing.

Runs where the tests run on such a build (3.13.5t, from Debian's source with
--disable-gil); that its start leaves the GIL off: test_start_files.
"""

import gc
import sysconfig
import threading

import pytest

if not sysconfig.get_config_var("Py_GIL_DISABLED"):
    pytest.skip("this CPython has a GIL", allow_module_level=True)

import cumem  # noqa: E402


@pytest.mark.parametrize("ask", [
    lambda: cumem.observe_tensor_cycles(print), cumem.find_cycles,
    lambda: cumem.why_alive([]), cumem.warn_tensor_cycles,
], ids=["observe", "find", "why_alive", "warn"])
def test_r19_it_declines(ask):
    callbacks = list(gc.callbacks)
    with pytest.raises(RuntimeError, match="free-threaded"):
        ask()
    assert gc.callbacks == callbacks and gc.get_debug() == 0
    assert cumem.status()["interceptor"] == "none"


def test_r19_threads_go_on_beside_it():
    def work():
        for _ in range(200):
            ring = [[] for _ in range(20)]
            ring[0].append(ring)
            del ring
            gc.collect()
            cumem.status()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cumem.status()["seen"]["collections"] == 0
