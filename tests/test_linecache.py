# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Code that is in no file, as a notebook's cells: its lines are those of Python's linecache."""

from process import NODES, run_ok

CELL = NODES + '''
import linecache
NAME = "<ipython-input-3-0a1b2c>"
TEXT = """\\
class Tr\u00e4iner:
    def __init__(self):
        self.acts = torch.zeros(1 << 20)
        self.me = self  # h\u00e9re

def main(steps):
    for _ in range(steps):
        kept.append(torch.zeros(1 << 18))
        cumem.step()
"""

class Trap:
    def __getattribute__(self, name):
        raise SystemExit("asked")
    __iter__ = __len__ = __getitem__ = __getattribute__

def put(lines):
    linecache.cache[NAME] = (len(TEXT), None, lines, NAME)

kept = []
exec(compile(TEXT, NAME, "exec"), globals())

def cut(report):
    cycle, = report["cycles"]
    return report["edges"][cycle["cut"][0] - 1]["made_at"][0]
'''


def test_lines_of_a_cell(tmp_path):
    run_ok(CELL + """
put(TEXT.splitlines(True))
with cumem.watch("here.json") as watcher:
    Tr\u00e4iner()
    gc.collect()
    cumem.flush()
    linecache.cache.clear()  # it was copied
    place = cut(watcher.report)
    assert place["line"] == 4 and place["filename"] == NAME, place
    assert place["source"] == "        self.me = self  # h\u00e9re", place
    assert place["before"].startswith("    def __init__(self):\\n"), place
    assert place["after"] == "\\ndef main(steps):", place
""", cwd=tmp_path)


def test_by_a_scan_by_an_observer_and_of_what_grows(tmp_path):
    run_ok(CELL + """
put(TEXT.splitlines(True))
gc.disable()
Tr\u00e4iner()
assert "self.me = self" in cut(cumem.find_cycles().report)["source"]
seen = []
with cumem.observe_tensor_cycles(seen.append):
    gc.collect()
assert "self.me = self" in cut(seen[0].report)["source"]
with cumem.watch() as watcher:
    main(30)
    row, = watcher.report["growth"]
    assert row["made_at"][0]["source"].strip() == "kept.append(torch.zeros(1 << 18))", row
""", cwd=tmp_path)


def test_what_is_no_list_of_lines_is_left_alone(tmp_path):
    """Nothing of the program's is called, and a file's own lines come first."""
    run_ok(CELL + """
watcher = cumem.watch()
def tell(count):
    Tr\u00e4iner()
    gc.collect()
    cumem.flush()
    return cut(watcher.report)["source"]
for entry in (Trap(), (Trap(),), (1, None, Trap(), NAME), (1, None, (TEXT,), NAME), None):
    linecache.cache[NAME] = entry
    exec(compile(TEXT, NAME, "exec"), globals())
    assert tell(1) == "", entry
put([Trap(), 3, None, "x" * 100_000])
NAME = "<cell 2>"
put([Trap(), 3, None, "x" * 100_000])
exec(compile(TEXT, NAME, "exec"), globals())
Tr\u00e4iner()
gc.collect()
cumem.flush()
linecache.cache = Trap()
sys.modules["linecache"] = Trap()
exec(compile(TEXT, "<cell 3>", "exec"), globals())
Tr\u00e4iner()
gc.collect()
cumem.flush()
""", cwd=tmp_path)
