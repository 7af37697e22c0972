# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""torch's recorder in place of the slot: a torch.cuda that only pretends to record."""

import pytest

from process import NODES, run_ok
from test_allocations import FOREIGN, START, stand_in  # noqa: F401
from test_categories import TIMELINE
from test_memory import PRETEND

RECORDER = NODES + PRETEND + """
class Recorder:
    on, calls, snapshots, history = False, [], 0, 1

    def record(self, enabled="all", *args, **options):
        self.calls.append((enabled, options))
        self.on = enabled is not None
        self.history = 50 if enabled == "all" else 1

    def snapshot(self):
        self.snapshots += 1
        return {"segments": segments, "device_traces": [[{}] * self.history, []]}

recorder = Recorder()
torch._C._cuda_isHistoryEnabled = lambda: recorder.on
torch.cuda.memory._record_memory_history = recorder.record
torch.cuda.memory._snapshot = recorder.snapshot
ARMED = ("state", {"context": "state", "stacks": "python"})

def hook():
    return cumem.status()["allocator_hook"]

def frames(*places):
    return [{"filename": f, "line": line, "name": name} for f, line, name in places]

def live(tensor, *places):
    size = tensor.untyped_storage().nbytes()
    found = segment(tensor.data_ptr(), [("a", size, size)], stream=0x77)
    found["blocks"][0]["frames"] = frames(*places)
    segments.append(found)
"""


def test_it_is_armed_where_the_slot_is_refused(tmp_path):
    run_ok(RECORDER + """
for _ in range(2):
    with cumem.observe_tensor_cycles(print):
        gc.collect()
        assert recorder.calls == [ARMED], recorder.calls
        assert hook()["hook"] == "recorder" and "no CUDA" in hook()["why"], hook()
        assert "read for each report" in hook()["recorder"]
        gc.collect()
    assert recorder.calls == [ARMED, (None, {})] and not recorder.on
    assert hook()["hook"] == "none"
    recorder.calls.clear()
""", cwd=tmp_path)


def test_it_is_armed_where_a_question_came_before_any_observer(tmp_path):
    run_ok(RECORDER + """
cumem.find_cycles()
assert recorder.calls == [], recorder.calls
with cumem.observe_tensor_cycles(print):
    assert recorder.calls == [ARMED], recorder.calls
""", cwd=tmp_path)


def test_a_report_has_the_line_that_torch_recorded(tmp_path):
    done = run_ok(RECORDER + """
gc.disable()
(tensor,) = [torch.zeros(1 << 20)]
node = Node(tensor)
node.link = node
live(tensor, ("??", 0, "at::empty"), ("/job/model.py", 88, "forward"), ("/job/train.py", 7, "main"))
del node, tensor
with cumem.observe_tensor_cycles(print):
    report = cumem.find_cycles(devices="cpu").report
    storage, = report["storages"]
    site = next(s for s in report["sites"] if s["id"] == storage["site"])
    print([(f["filename"], f["line"], f["name"]) for f in site["frames"]])
    assert storage["stream"] == "0x77", storage
    # Nothing of it stays: the next block at this address is another one's.
    assert hook()["live_blocks"] == 0 and recorder.snapshots == 1
    assert report["allocator_hook"] == "recorder"
""", cwd=tmp_path)
    assert done.out == "[('/job/model.py', 88, 'forward'), ('/job/train.py', 7, 'main')]\n"


def test_what_no_object_explains_has_its_line(tmp_path):
    run_ok(RECORDER + """
segments[0]["blocks"][0]["frames"] = frames(("/job/ddp.py", 12, "bucket"))
with cumem.observe_tensor_cycles(print):
    report = cumem.find_cycles().report
    row = max(report["held"], key=lambda row: row["site"] is not None)
    site = next(s for s in report["sites"] if s["id"] == row["site"])
    assert (row["bytes"], row["framework"], row["count"]) == (8 * MIB, "torch", 1), row
    assert site["frames"][0]["filename"] == "/job/ddp.py"
    assert sum(row["bytes"] for row in report["held"]) == 36 * MIB
    cumem.step()  # what is not heard has no iterations
    cumem.step()
    report = cumem.find_cycles().report
    assert not report["devices"][0].get("iterations")
""", cwd=tmp_path)


def test_the_users_recorder_is_left_alone(tmp_path):
    run_ok(RECORDER + """
recorder.record("all")
with cumem.observe_tensor_cycles(print):
    gc.collect()
    cumem.find_cycles()
    assert hook()["hook"] == "none" and "left alone" in hook()["recorder"], hook()
assert len(recorder.calls) == 1 and recorder.snapshots == 0 and recorder.on
""", cwd=tmp_path)


def test_a_recorder_that_the_user_switches_on_later_is_the_users(tmp_path):
    run_ok(RECORDER + """
with cumem.observe_tensor_cycles(print):
    gc.collect()
    recorder.record("all")
    cumem.find_cycles()
    assert hook()["hook"] == "none" and "by the program" in hook()["recorder"], hook()
assert recorder.on and len(recorder.calls) == 2
recorder.on = False
recorder.calls.clear()
with cumem.observe_tensor_cycles(print):
    gc.collect()
    recorder.record("all")
assert recorder.on and len(recorder.calls) == 2  # never asked in between
""", cwd=tmp_path)


def test_it_is_not_armed_without_stacks_or_where_the_slot_is_heard(stand_in, tmp_path):  # noqa: F811
    run_ok(RECORDER + """
with cumem.observe_tensor_cycles(print):
    gc.collect()
    assert recorder.calls == [] and hook()["hook"] == "none" and hook()["live_blocks"] == 0
""", cwd=tmp_path, CUMEM_STACKS=0)
    run_ok(START + RECORDER + """
with cumem.observe_tensor_cycles(print):
    gc.collect()
    assert recorder.calls == [] and cumem.status()["allocator_hook"]["hook"] == "torch slot"
    cumem.find_cycles()
    assert recorder.snapshots == 0
""", cwd=tmp_path, STAND_IN=stand_in)


def test_what_torch_refuses_is_said(tmp_path):
    run_ok(RECORDER + """
del torch._C._cuda_isHistoryEnabled
with cumem.observe_tensor_cycles(print):
    gc.collect()
    assert "does not say" in hook()["recorder"] and recorder.calls == []
torch._C._cuda_isHistoryEnabled = lambda: recorder.on
def refuse(*args, **options):
    raise RuntimeError("cudaMallocAsync does not yet support recordHistory")
torch.cuda.memory._record_memory_history = refuse
with cumem.observe_tensor_cycles(print):
    gc.collect()
    assert "refused: RuntimeError: cudaMallocAsync" in hook()["recorder"], hook()
torch.cuda.memory._record_memory_history = recorder.record
with cumem.observe_tensor_cycles(print):
    gc.collect()
    segments.append({"device": 0, "blocks": None})
    assert cumem.find_cycles() and "cannot be read: KeyError" in hook()["recorder"], hook()
""", cwd=tmp_path)


def test_stacks_that_are_told_are_read_strictly(tmp_path):
    run_ok("""
from cumem import _core
import pytest
first = _core.add_site([("a.py", 1, "f"), ("b.py", 2, "g")])
assert first and first == _core.add_site([("a.py", 1, "f"), ("b.py", 2, "g")])
assert first != _core.add_site([("a.py", 1, "f")]) != 0
assert _core.add_site([]) == 0
for line in (-1, 0, 2**31, 2**63 - 1):
    assert _core.add_site([("a.py", line, "f")])
assert _core.add_site([("a\\udc80.py", 1, "f" * 10000)] * 1000)
for bad in (None, (), [None], [()], [("a.py", "1", "f")], [(1, 1, "f")], [("a.py", 1, b"f")],
            [("a.py", 1)], [["a.py", 1, "f"]]):
    with pytest.raises(TypeError):
        _core.add_site(bad)
with pytest.raises(OverflowError):
    _core.add_site([("a.py", 2**64, "f")])
""", cwd=tmp_path)


def test_an_allocator_that_tells_nobody_is_not_taken_for_one_that_is_heard(stand_in, tmp_path):  # noqa: F811
    run_ok(START + RECORDER + """
def refuse(*args, **options):
    raise RuntimeError("cudaMallocAsync does not yet support it")
torch._C._cuda_getAllocatorBackend = lambda: backend
torch._C._cuda_isHistoryEnabled = torch.cuda.memory_snapshot = refuse
torch._C._cuda_attach_out_of_memory_observer = refuse
sys.unraisablehook = lambda failure: os._exit(3)
for backend, found in (("cudaMallocAsync", "none"), ("native", "torch slot"), ("none", "none")):
    with cumem.observe_tensor_cycles(print):
        gc.collect()
        assert hook()["hook"] == found, hook()
        assert (f"torch's {backend} backend" in hook()["why"]) == (found == "none"), hook()
        if found == "none":
            assert "refused: RuntimeError" in hook()["recorder"], hook()
        before = hook()["events"]
        allocate()
        free()
        assert hook()["events"] - before == (0 if found == "none" else 2), hook()
        assert cumem.memory()["allocated"] == 36 * MIB
    gc.collect()
""", cwd=tmp_path, STAND_IN=stand_in)


@pytest.mark.parametrize("why", ["cudaMallocAsync", "uncached", "recorder"])
def test_growth_is_told_of_tensors_where_no_block_is_heard(why, stand_in, tmp_path):  # noqa: F811
    variables = {"recorder": {}, "uncached": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}}
    heard = {} if why == "recorder" else {"STAND_IN": stand_in}
    run_ok((START if heard else NODES + "import ctypes\nBASE = 0x7f0000000000\n") + RECORDER + FOREIGN
           + f"why = {why!r}" + """
if why == "cudaMallocAsync":
    torch._C._cuda_getAllocatorBackend = lambda: why
losses = []
def train(steps):
    for _ in range(steps):
        losses.append(over_dlpack(BASE + (len(losses) << 24)))
        alias = over_dlpack(BASE + (len(losses) - 1 << 24))
        gone = over_dlpack(BASE - (1 << 24))
        cumem.step()
handle = cumem.observe_tensor_cycles(print)
gc.collect()
assert hook()["hook"] == "recorder", hook()
for steps in (30, 10):
    train(steps)
    cumem.find_cycles()  # torch's recorder is read, and forgotten again
row, = [row for row in cumem.growth() if row["verdict"] == "leak"]
assert row["device"] == "cuda:0" and "losses" in row["advice"], row
assert row["frames"][1]["name"] == "over_dlpack", row
assert 3.9 * MIB < row["bytes_per_iteration"] < 4.1 * MIB and row["bytes"] == 160 * MIB, row
assert hook()["unknown_frees"] == 0, hook()
""", cwd=tmp_path, **variables.get(why, {}), **heard)


def test_a_place_that_another_tensor_has_since_is_that_ones(tmp_path):
    """Between two ends of iterations nobody tells that a tensor has gone."""
    run_ok(NODES + "import ctypes\nBASE = 0x7f0000000000\n" + RECORDER + FOREIGN + TIMELINE + """
from cumem import _core, _growth
handle = cumem.observe_tensor_cycles(print)
noise = over_dlpack(BASE)
cumem.step()
del noise
gradient = over_dlpack(BASE)
_core.categories([(gradient, _growth.GRADIENT, "")])
cumem.step()
point = last_point()
assert (point["gradient"], point["other"]) == (4 * MIB, 0), point
""", cwd=tmp_path)
