# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The start through the environment, and the report's name."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from process import LEAK, NODES, SECONDS, environment, reports, run, run_ok

LITTLE = LEAK.replace("1 << 20", "1 << 12")


def test_one_variable_and_no_change_to_the_program(tmp_path):
    done = run_ok(LEAK + "print(os.getpid())", cwd=tmp_path, CUMEM_WARN_CYCLES=1)
    assert "DEAD CYCLE x3, 4.0 MiB each, at most 12 MiB at once" in done.err
    assert done.out.strip().isdecimal()
    assert reports(tmp_path) == [f"leak-{done.out.strip()}.json"]


@pytest.mark.parametrize("value", ["", "0", "false", "Off", "no"])
def test_empty_and_zero_mean_off(tmp_path, value):
    done = run_ok(LEAK + "assert 'cumem' not in sys.modules", cwd=tmp_path, CUMEM_WARN_CYCLES=value)
    assert done.err == "" and reports(tmp_path) == []


def test_program_that_finds_nothing_writes_nothing(tmp_path):
    done = run_ok("import gc; gc.collect(); print('done')", cwd=tmp_path, CUMEM_WARN_CYCLES=1)
    assert (done.out, done.err, reports(tmp_path)) == ("done\n", "", [])


def test_it_imports_no_torch_and_initialises_no_device(tmp_path):
    run_ok("""
import sys, gc
gc.collect()
assert "cumem" in sys.modules and "torch" not in sys.modules
import torch
gc.collect()
assert not torch.cuda.is_initialized()
import os
os.environ["CUDA_VISIBLE_DEVICES"] = ""
assert torch.cuda.device_count() == 0
""", cwd=tmp_path, CUMEM_WARN_CYCLES=1)


def test_torch_is_noticed_where_no_collection_comes(tmp_path):
    """Collection is off before the import: the first tensors have their stacks, and the cut its line."""
    (tmp_path / "train.py").write_text("""
import gc
gc.disable()
import torch
class Node: pass
def main():
    for _ in range(3):
        a, b = Node(), Node()
        a.tensor = torch.zeros(1 << 20)
        a.peer, b.peer = b, a
main()
assert gc.get_stats()[2]["collections"] == 0
""")
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True,
                          env=environment(CUMEM_WARN_CYCLES=1), timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert "#1 DEAD CYCLE x3, 4.0 MiB each" in done.stderr, done.stderr
    assert "train.py:9 main: a.tensor" in done.stderr and "train.py:10  a.peer" in done.stderr, done.stderr
    assert "not known" not in done.stderr, done.stderr


def test_torch_imported_on_a_thread_is_noticed_too(tmp_path):
    (tmp_path / "train.py").write_text("""
import gc, threading
gc.disable()
def load():
    global torch
    import torch
thread = threading.Thread(target=load)
thread.start()
thread.join()
class Ring: pass
ring = Ring()
ring.me = ring
ring.tensor = torch.zeros(1 << 20)
del ring
""")
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True,
                          env=environment(CUMEM_WARN_CYCLES=1), timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert "train.py:13 <module>: ring.tensor" in done.stderr, done.stderr


def test_torch_is_noticed_after_a_removal_while_a_notice_waited(tmp_path):
    """A thread's, for the main one, which waits for that thread."""
    run_ok("""
import gc, sys, threading, types
import cumem
gc.disable()
sys.modules["jax"] = types.ModuleType("jax")  # its backend is waited for at each import
def removed():
    handle = cumem.observe_tensor_cycles(print)
    import colorsys
    handle.remove()
thread = threading.Thread(target=removed)
thread.start(); thread.join()
del sys.modules["jax"]
def torch_is(): return cumem.status()["frameworks"]["torch"]
with cumem.observe_tensor_cycles(print):
    assert torch_is() == "not imported"
    import torch
    assert torch_is() != "not imported"
""", cwd=tmp_path)


# A torch.cuda that says on standard output which of its functions is called; as the real one, it
# reads the environment when it is initialised, and takes an allocator only before it has used one.
TELLING = """
import functools, gc, inspect, os, sys
gc.disable()  # nobody looks at torch before it tells
import torch, torch._dynamo
gc.enable()
told, used = True, False

def tell(text):
    if told: os.write(1, f"{text}\\n".encode())

def telling(module, name, function):
    @functools.wraps(function)
    def told_of(*args, **named):
        tell(name); return function(*args, **named)
    setattr(module, name, told_of)

def initialise():
    global used
    used = True
    tell([os.environ.get(name) for name in ("PYTORCH_CUDA_ALLOC_CONF", "CUDA_VISIBLE_DEVICES")])

def change(allocator):
    if used: raise RuntimeError("Can't swap an already initialized allocator")
    ours["_cuda_getAllocatorBackend"] = lambda: "pluggable"

def refuse(*args, **named):
    global used
    used = True
    raise RuntimeError("this allocator does not support it")

ours = dict.fromkeys(
    ("_cuda_memoryStats", "_cuda_memorySnapshot", "_cuda_record_memory_history",
     "_cuda_attach_out_of_memory_observer", "_cuda_getDeviceProperties"), refuse)
ours |= {"_cuda_init": initialise, "_cuda_changeCurrentAllocator": change,
         "_cuda_getDeviceCount": lambda: 1, "_cuda_getDevice": lambda: 0,
         "_cuda_getAllocatorBackend": lambda: "native", "_cuda_isHistoryEnabled": lambda: False}
for name in ours:
    telling(torch._C, name, lambda *args, name=name, **named: ours[name](*args, **named))
for name, function in list(vars(torch.cuda).items()):
    if inspect.isfunction(function) and name not in ("is_initialized", "_is_in_bad_fork"):
        telling(torch.cuda, name, function)
torch.cuda._cudart = object()
torch.cuda._queued_calls.clear()
cumem = sys.modules.get("cumem")

class Node: pass

def work():
    for _ in range(3):
        model(torch.ones(4, 300)).sum().backward()
        optimizer.step(); optimizer.zero_grad()
        node = Node(); node.me, node.tensor = node, torch.zeros(1 << 18)
        del node; gc.collect()

def ask():
    if not cumem: return
    cumem.step(); cumem.find_cycles(); cumem.growth(); cumem.status(); cumem.why_alive(model)
    cumem.memory()

model = torch.nn.Linear(300, 300)
optimizer = torch.optim.AdamW(model.parameters())
work(); ask()
"""
LATE = """
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
work(); ask()
from torch.cuda.memory import _CUDAAllocator, change_current_allocator
change_current_allocator(_CUDAAllocator(object()))
work()
torch.cuda.init()
told = False
work(); ask()
print(torch._C._cuda_getAllocatorBackend(), torch.cuda.is_initialized())
"""


def test_what_a_program_settles_late_holds_as_without(tmp_path):
    """The allocator's settings, the devices, the allocator: all read when torch initialises CUDA,
    which nothing of ours may do or bring about first."""
    plain, observed = (run_ok(TELLING + LATE, cwd=tmp_path, **variables)
                       for variables in ({}, {"CUMEM_WARN_CYCLES": 1}))
    assert observed.out == plain.out
    assert plain.out.endswith(
        "_cuda_changeCurrentAllocator\ninit\n_lazy_init\n_cuda_init\n"
        "['expandable_segments:True', '1']\npluggable True\n"), plain.out
    assert "DEAD CYCLE" in observed.err and "Traceback" not in observed.err, observed.err


def test_a_device_that_the_program_never_uses_is_never_asked_for(tmp_path):
    """To the very end: what exit does is told too."""
    plain, observed = (run_ok(TELLING, cwd=tmp_path, **variables)
                       for variables in ({}, {"CUMEM_WARN_CYCLES": 1}))
    assert observed.out == plain.out and "_cuda_init" not in plain.out
    assert "DEAD CYCLE" in observed.err and len(reports(tmp_path)) == 1


def test_a_broken_installation_lets_the_program_run(tmp_path):
    (tmp_path / "cumem").mkdir()
    (tmp_path / "cumem" / "__init__.py").write_text("raise ImportError('libcjson.so.1')")
    done = run_ok("print('trained')", cwd=tmp_path, CUMEM_WARN_CYCLES=1, PYTHONPATH=tmp_path)
    assert done.out == "trained\n"
    assert done.err == "cumem: not started: ImportError('libcjson.so.1')\n"


def test_output_name_and_rank(tmp_path):
    began = time.strftime("%Y%m%d-%H%M%S")
    done = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, RANK=3, WORLD_SIZE=8,
                  CUMEM_OUTPUT="mine-%r-%h-100%%-%t.json")  # fmt: skip
    (name,) = reports(tmp_path)
    host = re.escape(os.uname().nodename)
    started = re.fullmatch(rf"mine-3-{host}-100%-(\d{{8}}-\d{{6}})\.json", name)[1]
    assert began <= started <= time.strftime("%Y%m%d-%H%M%S")
    report = json.loads((tmp_path / name).read_text())
    assert (report["rank"], report["world_size"], report["host"]) == (3, 8, os.uname().nodename)
    assert "cumem [rank 3]: " in done.err


@pytest.mark.parametrize("off", ["", "0"])
def test_output_that_is_off_has_the_automatic_name(tmp_path, off):
    done = run_ok(LEAK + "print(os.getpid())", cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_OUTPUT=off)
    assert reports(tmp_path) == [f"leak-{done.out.strip()}.json"]


def test_rank_names_the_report_by_itself(tmp_path):
    run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, SLURM_PROCID=2)
    assert reports(tmp_path)[0].startswith(f"leak-r2-{os.uname().nodename}-")


def test_report_of_another_process_is_never_overwritten(tmp_path):
    (tmp_path / "leak.json").write_text("precious")
    for _ in range(2):
        run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_OUTPUT="leak.json")
    assert reports(tmp_path) == ["leak-2.json", "leak-3.json", "leak.json"]
    assert (tmp_path / "leak.json").read_text() == "precious"


@pytest.mark.parametrize("output, at", [
    ("out", "out"), ("out/", "out"), (".", "."), ("of-%r", "of-3"), ("none/", None)])
def test_in_a_directory_the_report_has_its_automatic_name(tmp_path, output, at):
    for folder in ("out", "of-3"):
        (tmp_path / folder).mkdir()
    done = run_ok(LEAK + "print(os.getpid())", cwd=tmp_path, CUMEM_WARN_CYCLES=1,
                  CUMEM_OUTPUT=output, RANK=3)
    name = f"leak-r3-{os.uname().nodename}-{done.out.strip()}.json"
    if at is None:
        assert f"report is not written to none/{name}: No such file" in done.err, done.err
    else:
        assert [path.relative_to(tmp_path / at) for path in tmp_path.rglob("*.json")] == [Path(name)]


def test_a_hundred_findings_do_not_fill_the_log(tmp_path):
    """32 are told as they come, the next 32 together, what is left at exit; the report has all."""
    done = run_ok(NODES + """
kinds = [type(f"Kind{i}", (), {}) for i in range(100)]
for kind in kinds:
    a = kind()
    a.me, a.tensor = a, torch.zeros(1 << 19)
    del a
    gc.collect()
    cumem.flush()
""", cwd=tmp_path, CUMEM_WARN_CYCLES=1)
    assert done.err.count("DEAD CYCLE") == 32 + 5 + 5, done.err
    assert "hidden: 27 more (at most 54 MiB)" in done.err and "hidden: 31 more" in done.err
    report = json.loads((tmp_path / reports(tmp_path)[0]).read_text())
    assert len(report["cycles"]) == 100


def test_where_the_current_directory_is_gone_the_report_alone_is_missing(tmp_path):
    done = run_ok(NODES + """
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
cumem.find_cycles()
cumem.warn_tensor_cycles()
make_pair(1 << 20); gc.collect(); cumem.flush()
""", cwd=tmp_path)
    assert "DEAD CYCLE, 4.0 MiB" in done.err and "report is not written to leak-" in done.err


def _no_utf8(folder):
    name = folder / os.fsdecode(b"caf\xe9")
    name.mkdir()
    (name / "cumem.supp").write_text("type Other\nnonsense here\n")
    return name


def test_a_folder_whose_name_is_not_utf8(tmp_path):
    folder = _no_utf8(tmp_path)
    done = run_ok(LEAK, cwd=folder, CUMEM_WARN_CYCLES=1)
    assert "DEAD CYCLE x3" in done.err and "cumem.supp: line 2" in done.err, done.err
    assert len(reports(folder)) == 1


def test_a_path_that_is_not_utf8(tmp_path):
    run_ok(NODES + """
os.chdir(b"caf\\xe9")
with cumem.watch(b"r\\xe9sum\\xe9.json") as watcher:
    make_pair(1 << 20)
    gc.collect()
    cumem.flush()
    path = cumem.status()["report"]
    assert os.fsencode(path).endswith(b"/caf\\xe9/r\\xe9sum\\xe9.json"), path
assert len(json.load(open(path))["cycles"]) == 1
""", cwd=_no_utf8(tmp_path).parent)


@pytest.mark.parametrize("rank", ["9" * 20, "9" * 5000])
def test_a_rank_that_no_job_has(tmp_path, rank):
    done = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, RANK=rank, WORLD_SIZE=rank)
    assert "DEAD CYCLE x3" in done.err, done.err
    report = json.loads((tmp_path / reports(tmp_path)[0]).read_text())
    assert report["rank"] == report["world_size"] == 10**15 - 1


def test_what_fails_as_it_begins_is_made_up_for(tmp_path):
    """The handlers of exit and fork are there by then, and who the process is comes next time."""
    done = run_ok(NODES + """
from cumem import _core
def fail(paths):
    raise MemoryError
suppressions, _core.suppressions = _core.suppressions, fail
try:
    cumem.watch("here.json")
except MemoryError:
    _core.suppressions = suppressions
else:
    raise SystemExit("it was swallowed")
cumem.watch("here.json")
make_pair(1 << 20)
""", cwd=_no_utf8(tmp_path))
    assert "cumem.supp: line 2" in done.err and "DEAD CYCLE, 4.0 MiB" in done.err, done.err


def test_unreadable_values_are_named_and_the_default_is_used(tmp_path):
    done = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_MIN_BYTES="much",
                  CUMEM_DEVICES="gpu?")  # fmt: skip
    assert "CUMEM_MIN_BYTES='much'" in done.err and "CUMEM_DEVICES='gpu?'" in done.err
    assert "DEAD CYCLE x3" in done.err


def test_threshold_and_devices_from_the_environment(tmp_path):
    quiet = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_MIN_BYTES="1GiB")
    assert quiet.err == "" and len(reports(tmp_path)) == 1, "it stays in the report"
    other = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_DEVICES="cuda:0")
    assert other.err == "" and len(reports(tmp_path)) == 1


def test_no_stacks_on_request(tmp_path):
    done = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_STACKS=0)
    assert "alloc not known" in done.err


def test_suppressions_silence_a_type(tmp_path):
    (tmp_path / "cumem.supp").write_text("# ours\ntype Node\nnonsense here\n")
    done = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1)
    assert "DEAD CYCLE" not in done.err and "cumem.supp: line 3" in done.err, done.err


@pytest.mark.parametrize("rule", ["type Node", "type __main__.Node", "type Node  # known"])
def test_a_class_of_the_program_is_named_as_it_is_told_or_in_full(tmp_path, rule):
    (tmp_path / "cumem.supp").write_text(rule + "\n")
    done = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1)
    assert done.err == "", done.err


def test_children_start_by_themselves_and_forked_ones_are_silent(tmp_path):
    done = run_ok(LEAK + """
import subprocess
child = os.fork()
if child == 0:
    for _ in range(5):
        make_pair(1 << 10)      # larger ones are torch's threads', which did not come along
    gc.collect()
    os._exit(0)
os.waitpid(child, 0)
if len(sys.argv) == 1:
    subprocess.run([sys.executable, "-c", open("again.py").read(), "child"], check=True)
""", cwd=_with_program(tmp_path), CUMEM_WARN_CYCLES=1)
    assert len(reports(tmp_path)) == 2
    assert done.err.count("DEAD CYCLE") == 2, done.err
    assert "x5" not in done.err


def _with_program(folder):
    (folder / "again.py").write_text(LEAK)
    return folder


def test_data_loader_workers_do_not_watch_host_memory(tmp_path):
    done = run_ok("""
import multiprocessing, os, sys
sys.path.insert(0, os.getcwd())
if __name__ == "__main__":
    import work
    process = multiprocessing.get_context("spawn").Process(target=work.leak)
    process.start(); process.join()
    assert process.exitcode == 0
""", cwd=_with_work(tmp_path), CUMEM_WARN_CYCLES=1)
    assert done.err == "" and reports(tmp_path) == []


def _with_work(folder):
    (folder / "work.py").write_text(
        "def leak():\n    exec(" + repr(LEAK) + ", {'__name__': 'work'})\n"
    )
    return folder


@pytest.mark.parametrize("variable, value, why", [
    ("CUMEM_STACKS", "maybe", "not a switch"), ("CUMEM_VALUES", "maybe", "not a switch"),
    ("CUMEM_INTERCEPTOR", "foo", "expected sentinel or saveall"),
    ("CUMEM_SUPPRESSIONS", "nofile", "No such file"), ("CUMEM_DEVICES", "gpu", "not a device"),
    ("CUMEM_OUTPUT", "%q.json", "expected %p, %r, %h, %t or %%, not '%q'"),
    ("CUMEM_OUTPUT", "100%", "not '%'"), ("CUMEM_MIN_BYTES", "much", "not a size")])
def test_an_unreadable_value_is_one_warning(tmp_path, variable, value, why):
    done = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, **{variable: value})
    first, *rest = done.err.splitlines()
    assert first.startswith(f"cumem: {variable}={value!r} is not used: ") and why in first
    assert "DEAD CYCLE x3" in done.err and "is not used" not in "".join(rest)


NO_FOLDER = "cumem: CUMEM_OUTPUT='later/leak.json': no folder yet: mkdir -p "


def test_a_folder_that_is_not_there_is_told_at_the_start(tmp_path):
    """And once: the program starts, finds nothing, and makes no folder."""
    done = run_ok("import cumem\ncumem.watch()", cwd=tmp_path, CUMEM_WARN_CYCLES=1,
                  CUMEM_OUTPUT="later/leak.json")  # fmt: skip
    assert done.err == f"{NO_FOLDER}{tmp_path}/later\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", [
    "import os; os.mkdir('later')\n" + LEAK, LEAK + "import os; os.mkdir('later')\n"],
    ids=["before a finding", "after it"])
def test_a_folder_that_the_program_makes_has_the_report(tmp_path, program):
    done = run_ok(program, cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_OUTPUT="later/leak.json")
    assert done.err.startswith(NO_FOLDER) and "DEAD CYCLE x3" in done.err, done.err
    assert json.loads((tmp_path / "later" / "leak.json").read_text())["cycles"]


@pytest.mark.parametrize("output, way_out", [
    ("a b/", "no folder yet: mkdir -p '{}/a b'"), ("of-%r/", "no folder yet: mkdir -p {}/of-3"),
    ("taken/", "{}/taken is no folder")])
def test_the_folder_is_named_as_a_shell_takes_it(tmp_path, output, way_out):
    (tmp_path / "taken").write_text("")
    done = run_ok("", cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_OUTPUT=output, RANK=3)
    assert done.err == f"[rank 3] cumem: CUMEM_OUTPUT={output!r}: {way_out.format(tmp_path)}\n"


def test_no_least_bytes_on_request(tmp_path):
    assert "DEAD CYCLE" not in run_ok(LITTLE, cwd=tmp_path, CUMEM_WARN_CYCLES=1).err
    assert "DEAD CYCLE x3" in run_ok(LITTLE, cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_MIN_BYTES=0).err


def test_texts_that_are_no_names_are_told_on_request(tmp_path):
    program = NODES + """
handle = cumem.warn_tensor_cycles(min_bytes=0)
node = Node(torch.zeros(1024))
for name, key in (("a", "a secret of mine"), ("b", b"bytes"), ("c", "layer1.0.weight")):
    setattr(node, name, {key: [node]})
del node
gc.collect()
"""
    shown = {}
    for values in "", "1":
        run_ok(program, cwd=tmp_path, CUMEM_VALUES=values)
        (name,) = reports(tmp_path)
        shown[values] = (tmp_path / name).read_text()
        (tmp_path / name).unlink()
    assert "secret" not in shown[""] and "b'bytes'" not in shown[""]
    assert "[<str>]" in shown[""] and "[<bytes>]" in shown[""] and "['layer1.0.weight']" in shown[""]
    assert "['a secret of mine']" in shown["1"] and "[b'bytes']" in shown["1"]


def test_a_directory_of_the_programs_own(tmp_path):
    program = LEAK.replace("gc.collect()", "cumem.warn_tensor_cycles(directory='w%p')\ngc.collect()")
    (tmp_path / "w%p").mkdir()
    run_ok("import cumem\n" + program, cwd=tmp_path, RANK=3)
    (name,) = reports(tmp_path / "w%p")
    assert name.startswith(f"leak-r3-{os.uname().nodename}-")
    run_ok("""
import cumem, pytest
with pytest.raises(ValueError, match="no such directory: 'nowhere'"):
    cumem.warn_tensor_cycles(directory="nowhere")
""", cwd=tmp_path)
