# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What of the timeline is input, and what the process holds outside the frameworks."""

import pathlib

import pytest

from process import NODES, run_ok
from test_allocations import START, stand_in  # noqa: F401
from test_memory import PRETEND

TIMELINE = """
def last_point():
    (device,) = json.loads(cumem._core.document())["timeline"]["devices"]
    return dict(zip(device["categories"], device["points"][-1][2:]))
"""


def test_batches_are_inputs(tmp_path):
    run_ok(NODES + TIMELINE + """
from torch.utils.data import DataLoader
rows = [torch.randn(256) for _ in range(640)]
handle = cumem.observe_tensor_cycles(print)
model = torch.nn.Linear(256, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches, doubles, others = [], [], []
for x in DataLoader(rows, batch_size=32):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    batches.append(x)
    doubles.append(x.to(torch.float64))
    others.append(x * 2)
point = last_point()
assert point["input"] >= 3 * 19 * 32 * 256 * 4, point
assert point["input"] < 3 * 22 * 32 * 256 * 4, point
assert point["other"] >= 19 * 32 * 256 * 4 and point["parameter"] >= 64 * 256 * 4, point
rows = {row["advice"].split()[1].strip(",`"): row["category"] for row in cumem.growth()}
assert rows == {"batches": "input", "doubles": "input", "others": "other"}, rows
""", cwd=tmp_path)


def test_moving_a_model_and_casting_in_it_is_no_input(tmp_path):
    run_ok(NODES + TIMELINE + """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.register_buffer("scale", torch.ones(256, 256))
        self.kept = []
    def forward(self, x):
        self.kept.append(x.to(torch.float64))
        return self.linear(x) * self.scale[0, 0]
handle = cumem.observe_tensor_cycles(print)
model = Model().to(torch.float64).to(torch.float32)
for _ in range(12):
    model(torch.ones(64, 256)).sum().backward()
    cumem.step()
point = last_point()
assert point["input"] == 0 and point["other"] > 11 * 64 * 256 * 8, point
""", cwd=tmp_path)


OUTSIDE = """
import time
asked = []
def process_use(index):
    used = 10 * 1024 * MIB + outside(len(asked), steps)
    asked.append(index)
    return 80 * 1024 * MIB, used, 80 * 1024 * MIB - used, used, 0, None
cumem._core.process_use = process_use
steps = 0
def run(asks):
    global steps
    asks += len(asked)
    until = time.monotonic() + 100
    while len(asked) < asks:
        assert time.monotonic() < until, (len(asked), steps)
        allocate(BASE, MIB)
        free(BASE, MIB)
        steps += 1
        cumem.step()
        time.sleep(0.005)
def told():
    return [row for row in cumem.growth() if row["verdict"] in ("leak", "lingering")]
"""


def test_growth_outside_the_frameworks_is_told(stand_in, tmp_path):  # noqa: F811
    done = run_ok(START + PRETEND + OUTSIDE + TIMELINE + """
def outside(asks, steps):
    return steps * MIB
handle = cumem.warn_tensor_cycles()
run(24)  # later ones are asked for seldom
row, = told()
assert row["category"] == "outside the frameworks" and row["device"] == "cuda:0", row
assert row["site"] is None and row["frames"] == [] and row["holder"] == [], row
assert 0.7 * MIB < row["bytes_per_iteration"] < 1.4 * MIB, row
assert "CUMEM_DRIVER=1" in row["advice"], row
assert row["iterations_to_full"] > 1000, row
assert last_point()["outside the frameworks"] >= 9 * 1024 * MIB, last_point()
assert len(asked) <= steps + 10, (len(asked), steps)  # reports ask too
print(cumem._core.text(cumem._core.document(), False, 0))
""", cwd=tmp_path, STAND_IN=stand_in)
    heading, finding, fix, *more = done.out.strip().split("\n")
    assert heading.startswith("cumem: cuda:0 grows by 1."), done.out
    assert " MiB per iteration outside the frameworks since iteration " in finding, done.out
    assert "CUMEM_DRIVER=1" in fix, done.out
    assert more[-1].strip() == "destroy_process_group(group)" and len(more) == 2, done.out


# A device that Numba alone uses, whose arrays are nobody's but ours to count.
NUMBA = f"""
import gc, json, sys
sys.path.insert(0, {str(pathlib.Path(__file__).with_name("fake_frameworks"))!r})
import cumem
import numba.cuda
from cumem import _frameworks
from numba.cuda.cudadrv import devicearray, driver
_frameworks._has_context = lambda index: index == 0
BASE, MIB = None, 1 << 20
context = driver.Context(0)
def allocate(_, size):
    global latest
    latest = devicearray.DeviceNDArray((size,), "not a dtype", 1, context.memalloc(size))
    return latest
def free(*_):
    pass
"""


def test_it_is_told_where_torch_uses_no_device(tmp_path):
    done = run_ok(NUMBA + OUTSIDE + """
def outside(asks, steps):
    return steps * 4 * MIB
handle = cumem.warn_tensor_cycles()
gc.collect()
run(24)
row, = told()
assert row["category"] == "outside the frameworks" and row["device"] == "cuda:0", row
assert 3 * MIB < row["bytes_per_iteration"] < 5 * MIB, row
(name,) = __import__("glob").glob("leak-*.json")
device, = json.load(open(name))["devices"]  # as the warning wrote it
assert device["total"] == 80 * 1024 * MIB, device
""", cwd=tmp_path)
    assert "cumem: cuda:0 grows by 4.0 MiB per iteration" in done.err, done.err


@pytest.mark.parametrize("torch", ["", "import torch" + PRETEND])
def test_what_numba_holds_is_told_once(torch, tmp_path):
    """Arrays that end within a page of the driver's."""
    run_ok(NUMBA + torch + OUTSIDE + """
kept, make = [], allocate
def allocate(*_):
    kept.append(make(BASE, 3 * MIB // 2))
def outside(asks, steps):
    return len(kept) * 2 * MIB
handle = cumem.observe_tensor_cycles(print)
gc.collect()
run(24)
row, = told()
assert row["category"] == "other" and "clear kept" in row["advice"], row
assert 1.4 * MIB < row["bytes_per_iteration"] < 1.6 * MIB, row
use = cumem.memory()
assert use["frameworks"]["numba"] == (len(kept) * 3 * MIB // 2, len(kept) * 2 * MIB), use
assert use["allocated"] - use["frameworks"].get("torch", (0, 0))[0] == len(kept) * 3 * MIB // 2
assert use["outside_frameworks"] == 10 * 1024 * MIB - use["frameworks"].get("torch", (0, 0))[1]
exec("del kept[:]")  # not seen: a line that empties it makes it no leak
assert cumem.memory()["frameworks"]["numba"][0] == 3 * MIB // 2  # the latest
events = cumem.status()["allocator_hook"]["events"]
cumem.find_cycles(devices="cpu")  # a question of another device
assert cumem.status()["allocator_hook"]["events"] == events
""", cwd=tmp_path)


def test_slices_of_time_come_where_torch_is_not_there(tmp_path):
    done = run_ok(NUMBA + """
import time
handle = cumem.warn_tensor_cycles()
gc.collect()
kept, until = [], time.monotonic() + 100
while (json.loads(cumem._core.document())["iteration"] or 0) < 15:
    assert time.monotonic() < until
    kept.append(allocate(BASE, MIB))
    time.sleep(0.005)
""", cwd=tmp_path)
    assert "`__main__.kept` (list, " in done.err and "fix   clear kept " in done.err, done.err


def test_it_is_told_where_the_driver_takes_long_to_answer(stand_in, tmp_path):  # noqa: F811
    """As beside many processes on the device."""
    run_ok(START + PRETEND + OUTSIDE + """
at_once = cumem._core.process_use
def process_use(index):
    time.sleep(0.008)
    return at_once(index)
cumem._core.process_use = process_use
def outside(asks, steps):
    return steps * 8 * MIB
handle = cumem.warn_tensor_cycles()
for _ in range(15):
    allocate(BASE, MIB)
    free(BASE, MIB)
    steps += 1
    cumem.step()
    time.sleep(0.1)
row, = told()
assert row["category"] == "outside the frameworks" and row["verdict"] == "leak", row
assert 7 * MIB < row["bytes_per_iteration"] < 9 * MIB, row
""", cwd=tmp_path, STAND_IN=stand_in)


@pytest.mark.parametrize("what", ["min(asks, 4) * 200 * MIB", "(asks % 3) * 40 * MIB", "0"])
def test_libraries_that_load_and_work_are_left_alone(what, stand_in, tmp_path):  # noqa: F811
    run_ok(START + PRETEND + OUTSIDE + f"""
def outside(asks, steps):
    return {what}
handle = cumem.observe_tensor_cycles(print)
run(24)
assert told() == [], told()
""", cwd=tmp_path, STAND_IN=stand_in)


def test_leaks_fill_the_device_together(stand_in, tmp_path):  # noqa: F811
    run_ok(START + PRETEND + OUTSIDE + """
def outside(asks, steps):
    return 0
segments[:] = []
at = BASE + (1 << 40)
def first():
    allocate(at + 4 * steps * MIB, MIB)
def second():
    allocate(at + (1 << 32) + 4 * steps * MIB, 3 * MIB)
handle = cumem.observe_tensor_cycles(print)
for _ in range(3):
    run(1)
for _ in range(30):
    first(); second()
    steps += 1
    cumem.step()
rows = told()
assert sorted(round(row["bytes_per_iteration"] / MIB) for row in rows) == [1, 3], rows
left = process_use(0)[2] + 12 * MIB  # what is cached of 48 MiB may be had too
assert all(abs(row["iterations_to_full"] - left / (4 * MIB)) < 0.2 * left / (4 * MIB)
           for row in rows), (rows, left)
""", cwd=tmp_path, STAND_IN=stand_in)
