# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""R11 for the whole package: what concerns an interpreter happens there."""

import sys

import pytest

from process import NODES, run_ok

# Two names of one module; of the kind that shares the GIL, as torch wants it.
INTERPRETERS = NODES + """
try:
    import _interpreters as interpreters
    other = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)

def run(code, where=other):
    failed = interpreters.run_string(where, code)
    assert failed is None, failed
"""
ARRAY = """
import gc, cumem
class Array:
    @property
    def __cuda_array_interface__(self): raise SystemExit("asked")
def make():
    a = Array(); a.me = a
"""


def test_r11_warnings_are_told_in_the_interpreter_that_warns(tmp_path):
    """A native thread finds them while another interpreter runs."""
    run_ok(INTERPRETERS + """
import logging
class Where(logging.Handler):
    def emit(self, record):
        told.append(interpreters.get_current() == interpreters.get_main())
told = []
logging.getLogger("cumem").addHandler(Where())
handle = cumem.warn_tensor_cycles(min_bytes=0)
for i in range(8):
    Kind = type(f"Kind{i}", (Node,), {})
    ring = [Kind(torch.zeros(1 << 4)) for _ in range(400)]      # takes a while
    for one, next_one in zip(ring, ring[1:] + ring[:1]): one.link = next_one
    del ring, one, next_one
    gc.collect()
    run("import time\\nfor i in range(10 ** 6): pass\\ntime.sleep(0.1)\\nfor i in range(10 ** 6): pass")
assert cumem.flush(60)
assert told == [True] * 8, told
interpreters.destroy(other)
""", cwd=tmp_path)


def test_r11_each_interpreter_observes_its_own(tmp_path):
    run_ok(INTERPRETERS + f"""
seen = []
handle = cumem.observe_tensor_cycles(seen.append)
run({ARRAY!r} + '''
seen = []
handle = cumem.observe_tensor_cycles(seen.append)
make()
assert len(cumem.find_cycles().report["cycles"]) == 1
gc.collect()
assert len(seen) == 1 and "Array" in seen[0].text, seen
handle.remove()
''')
make_pair(); gc.collect()
assert len(seen) == 1 and "Array" not in seen[0].text
interpreters.destroy(other)
""", cwd=tmp_path)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="one that may start no program has a GIL of its own")
def test_r11_where_no_program_may_be_started_the_page_has_no_drawing(tmp_path):
    run_ok(INTERPRETERS + f"""
alone = interpreters.create(isolated=True)
run({ARRAY!r} + '''
make()
page = cumem.find_cycles()
assert "Array" in page.text and "Graphviz" in page and "<svg" not in page
''', alone)
interpreters.destroy(alone)
interpreters.destroy(other)
""", cwd=tmp_path)
