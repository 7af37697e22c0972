# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""CUMEM_DRIVER=1 without a GPU: stand-ins for libcuda, libcupti and who calls them."""

import os
import pathlib
import subprocess

import pytest

from process import run, run_ok
from test_memory import PRETEND

TESTS = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
SOURCES = {
    "libcuda.so.1": "fake_cuda.c",
    "libcupti.so.13": "fake_cupti.c",
    "libcublasLt.so.13": "fake_caller.c",
    "libnccl.so.2": "fake_caller.c",
    "libc10_cuda.so": "fake_caller.c",
    "librmm.so": "fake_caller.c",
    "runtime.cpython-311-x86_64-linux-gnu.so": "fake_caller.c",
    "xla_cuda_plugin.so": "fake_caller.c",
}


@pytest.fixture(scope="module")
def fakes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fakes")
    for name, source in SOURCES.items():
        subprocess.run(
            ["cc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread", f"-Wl,-soname,{name}",
             str(TESTS / source), "-o", str(folder / name), "-ldl"],
            check=True,
        )  # fmt: skip
    return folder


START = """
import ctypes, gc, logging, os, sys
from ctypes import c_int, c_uint64

if os.environ["CUMEM_WARN_CYCLES"] == "1" and "cumem" not in sys.modules:
    import cumem._start  # a build folder has no cumem.pth
    cumem._start.main()

def load(name):
    return ctypes.CDLL(os.path.join(os.environ["FAKES"], name))

def library(name):
    found = load(name)
    found.fake_allocate.argtypes = (c_int, c_uint64, c_uint64)
    found.fake_free.argtypes = (c_uint64,)
    found.fake_churn.argtypes = (c_uint64, c_int, c_int)
    return found

cuda, cupti = load("libcuda.so.1"), load("libcupti.so.13")
state = (c_int * 2).in_dll(cuda, "fake_cuda")  # what cuDeviceGetCount returns, and answers
state[0], state[1] = 3, 0

def initialise():
    state[0], state[1] = 0, 2

def inject():  # as the driver does in cuInit
    injected = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    assert injected.InitializeInjection() == 1

blas, nccl, torch = map(library, ("libcublasLt.so.13", "libnccl.so.2", "libc10_cuda.so"))
BASE, MIB = 0x7f0000000000, 1 << 20

import cumem
said = []
class Keep(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.getLogger("cumem").addHandler(Keep())

def driver():
    return cumem.status()["driver"]

def held():
    report = cumem.find_cycles().report
    sites = {site["id"]: site for site in report["sites"]}
    rows = []
    for row in report.get("held", []):
        site = sites.get(row["site"])
        name = site["frames"][site["user_frame"]]["name"] if site else None
        rows.append((row["device"], row["framework"], row["library"], row["bytes"], row["count"], name))
    return rows
"""


def test_nothing_happens_unless_it_is_asked_for(fakes, tmp_path):
    done = run_ok(START + """
initialise()
with cumem.observe_tensor_cycles(print):
    gc.collect()
    blas.fake_allocate(0, BASE, MIB)
    status = driver()
    assert (status["hook"], status["events"]) == ("none", 0), status
    assert "CUMEM_DRIVER" in status["why"] and status["trouble"] is None
    assert held() == []
assert not blas.fake_subscribers() and not said
assert "libcumem_driver" not in open("/proc/self/maps").read()
print(os.environ.get("CUDA_INJECTION64_PATH"))
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=0, CUMEM_WARN_CYCLES=1)
    assert (done.out, done.err) == ("None\n", "")


def test_it_subscribes_once_cuda_is_initialised(fakes, tmp_path):
    run_ok(START + """
with cumem.observe_tensor_cycles(print):
    assert driver()["hook"] == "none" and "not initialised" in driver()["why"], driver()
    gc.collect()
    assert driver()["hook"] == "none" and not blas.fake_subscribers()
    blas.fake_allocate(0, BASE, MIB)
    initialise()
    gc.collect()
    assert driver()["hook"] == "driver", driver()
    assert "not set" in driver()["injection"]
    nccl.fake_allocate(1, BASE + MIB, 2 * MIB)
    status = driver()
    assert (status["events"], status["live_blocks"], status["live_bytes"]) == (1, 1, 2 * MIB)
    blas.fake_free(BASE)
    assert driver()["unknown_frees"] == 1
    assert driver()["lost"] == 0 and driver()["trouble"] is None
    nccl.fake_free(BASE + MIB)
    assert driver()["live_blocks"] == 0
assert driver()["hook"] == "none" and not blas.fake_subscribers()
with cumem.observe_tensor_cycles(print):
    assert driver()["hook"] == "driver" and blas.fake_subscribers() == 1
assert not said
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)


def test_frees_that_were_missed_are_no_blocks(fakes, tmp_path):
    run_ok(START + """
initialise()
with cumem.observe_tensor_cycles(print):
    blas.fake_allocate(0, BASE, MIB)
    assert driver()["live_blocks"] == 1
blas.fake_free(BASE)
with cumem.observe_tensor_cycles(print):
    assert driver()["live_blocks"] == 0
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)


def test_the_report_says_which_library_and_which_line(fakes, tmp_path):
    done = run_ok(START + "import torch as framework" + PRETEND.replace("torch.", "framework.") + """
initialise()
def workspace(at):
    blas.fake_allocate(0, at, 16 * MIB)
def connect():
    nccl.fake_allocate(1, BASE, 3 * MIB)
with cumem.observe_tensor_cycles(print):
    for i in range(2):
        workspace(BASE + (i + 1) * (1 << 30))
    connect()
    torch.fake_allocate(0, BASE + (1 << 40), 100 * MIB)  # counted as what torch has reserved
    for row in held():
        print(*row)
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)
    assert done.out.splitlines() == [
        f"cuda:0 driver libcublasLt.so.13 {32 << 20} 2 workspace",
        f"cuda:1 driver libnccl.so.2 {3 << 20} 1 connect",
    ]


def test_what_a_framework_counts_is_not_told_of_its_library_too(fakes, tmp_path):
    """Each pool is taken by the library, and then counted by the framework."""
    done = run_ok(START + """
from types import ModuleType, SimpleNamespace as Space
libraries = [library(name) for name in ("xla_cuda_plugin.so", "librmm.so",
                                        "runtime.cpython-311-x86_64-linux-gnu.so")]
initialise()
cumem._frameworks._has_context = lambda index: index == 0
with cumem.observe_tensor_cycles(print):
    gc.collect()
    for i, each in enumerate(libraries):
        each.fake_allocate(0, BASE + (i << 40), 64 * MIB)
    print(*sorted(row[2] for row in held()))
    pool = type("PoolMemoryResource", (), {"__module__": "rmm.mr", "pool_size": lambda self: 64 * MIB})()
    sys.modules["rmm.mr"] = Space(get_per_device_resource=lambda index: pool)
    print(*sorted(row[2] for row in held()))
    pools = Space(used_bytes=lambda: 0, total_bytes=lambda: 64 * MIB)
    sys.modules["cupy"] = Space(get_default_memory_pool=lambda: pools, cuda=Space(
        runtime=Space(getDevice=lambda: 0)))
    print(*sorted(row[2] for row in held()))
    device = Space(local_hardware_id=0, memory_stats=lambda: {"bytes_in_use": 0, "pool_bytes": 64})
    sys.modules["jax._src.xla_bridge"] = Space(_backends={
        "cuda": Space(local_devices=lambda: [device])})
    print(*sorted(row[2] for row in held()))
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)
    xla, rmm, cupy = "xla_cuda_plugin.so", "librmm.so", "runtime.cpython-311-x86_64-linux-gnu.so"
    assert done.out.splitlines() == [f"{rmm} {cupy} {xla}", f"{cupy} {xla}", xla, ""]


def test_what_an_object_holds_is_not_told_of_its_library_too(fakes, tmp_path):
    done = run_ok(START + f"sys.path.insert(0, {str(TESTS / 'fake_frameworks')!r})" + """
import numba.cuda
from numba.cuda.cudadrv import devicearray
context = numba.cuda.cudadrv.driver.Context(0)
initialise()
def array(size):
    pointer = context.memalloc(size)
    blas.fake_allocate(0, pointer.device_pointer, size)  # for what calls the driver by ctypes
    return devicearray.DeviceNDArray((size,), "not a dtype", 1, pointer)
with cumem.observe_tensor_cycles(print):
    gc.collect()
    arrays = [array(MIB), array(3 * MIB)]
    blas.fake_allocate(0, BASE - MIB, MIB)
    blas.fake_allocate(1, BASE + (9 << 32), MIB)
    print([row[:5] for row in held()])
    context.allocations.clear()  # not freed
    del arrays
    print(sum(row[3] for row in held()) // MIB)
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)
    library = "libcublasLt.so.13"
    rows, rest = done.out.splitlines()
    assert sorted(eval(rows)) == [("cuda:0", "driver", library, MIB, 1),
                                  ("cuda:1", "driver", library, MIB, 1)]
    assert rest == "6"


def test_the_summary_has_a_row_for_the_libraries(fakes, tmp_path):
    done = run_ok(START + "import torch\n" + PRETEND + """
initialise()
def main():
    blas.fake_allocate(0, BASE, 30 * MIB)
def more():
    blas.fake_allocate(0, BASE + (1 << 30), 2 * MIB)
with cumem.observe_tensor_cycles(print):
    main()
    more()
    print(cumem.find_cycles().text)
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)
    row = next(line for line in done.out.splitlines() if line.startswith("   libs"))
    assert row.startswith("   libs  libcublasLt.so.13 32 MiB <string>:") and row.endswith(" main")


def test_the_driver_loads_us_where_the_environment_starts_us(fakes, tmp_path):
    done = run_ok(START + """
assert os.path.basename(os.environ["CUDA_INJECTION64_PATH"]) == "libcumem_driver.so"
inject()
def before():
    blas.fake_allocate(0, BASE, MIB)
before()
initialise()
gc.collect()
status = driver()
assert (status["hook"], status["injection"], status["live_blocks"]) == ("driver", "ours", 1), status
assert blas.fake_subscribers() == 1
def after():
    nccl.fake_allocate(0, BASE + MIB, 2 * MIB)
after()
for row in held():
    print(*row)
print(said)
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=1)
    assert done.out.splitlines() == [
        f"cuda:0 driver libnccl.so.2 {2 << 20} 1 after",
        f"cuda:0 driver libcublasLt.so.13 {1 << 20} 1 None",
        "[]",
    ]
    assert done.err == ""


def test_who_else_has_the_injection_keeps_it(fakes, tmp_path):
    done = run_ok(START + """
initialise()
gc.collect()
assert driver()["hook"] == "driver"
print(os.environ["CUDA_INJECTION64_PATH"], driver()["injection"])
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=1,
                  CUDA_INJECTION64_PATH="/opt/nsight/libinject.so")  # fmt: skip
    assert done.out.startswith("/opt/nsight/libinject.so not ours: ")
    assert "is /opt/nsight/libinject.so" in done.out and done.err == ""


def test_paths_that_are_no_utf8_are_taken_as_they_are(fakes, tmp_path):
    """The whole start failed: no cycle was told either."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    library = folder / "nvidia" / "cu13" / "lib" / "libcupti.so.13"
    library.parent.mkdir(parents=True)
    library.write_text("")
    run_ok("""
import sys
sys.path.insert(0, %r)
import cumem
from cumem import _driver
with cumem.observe_tensor_cycles(print):
    assert _driver._find_cupti() == %r
    assert "is /opt/\\udce9.so, " in cumem.status()["driver"]["injection"]
sys.path[:] = []
assert _driver._find_cupti() == ""
""" % (str(folder), str(library)), cwd=tmp_path, CUMEM_DRIVER=1, CUDA_INJECTION64_PATH=os.fsdecode(b"/opt/\xe9.so"))


def test_another_profiler_holds_cupti(fakes, tmp_path):
    done = run_ok(START + """
blas.fake_refuse(39)
initialise()
for _ in range(3):
    gc.collect()
cumem.flush()
assert driver()["hook"] == "none" and "another profiler" in driver()["why"]
print(said)
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=1)
    assert done.err.count("another profiler holds CUPTI") == 1
    assert done.err.startswith("cumem: CUMEM_DRIVER=1: ") and done.err.count("\n") == 1
    assert done.out.count("another profiler") == 1


def test_a_subscription_that_is_taken_away(fakes, tmp_path):
    run_ok(START + """
initialise()
with cumem.observe_tensor_cycles(print):
    blas.fake_allocate(0, BASE, MIB)
    assert len(held()) == 1
    blas.fake_finalize()
    assert "shut down" in driver()["trouble"], driver()
    for _ in range(3):
        cumem.flush()
    assert len(said) == 1 and "shut down by another tool" in said[0], said
    assert driver()["hook"] == "driver" and held() == []
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)


def test_torch_profiler_records_no_gpu_events_meanwhile(fakes, tmp_path):
    run_ok(START + """
import torch as framework
initialise()
with cumem.observe_tensor_cycles(print):
    gc.collect()
    assert driver()["hook"] == "driver" and not said
    activities = [framework.profiler.ProfilerActivity.CPU]
    for _ in range(2):
        with framework.profiler.profile(activities=activities):
            gc.collect()
            cumem.flush()
    assert len(said) == 1 and "torch.profiler" in said[0] and "unset CUMEM_DRIVER" in said[0], said
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)


@pytest.mark.parametrize("start", [0, 1])
def test_a_value_that_cannot_be_read(fakes, tmp_path, start):
    done = run_ok(START + """
initialise()
with cumem.observe_tensor_cycles(print):
    gc.collect()
    assert driver()["hook"] == "none"
with cumem.observe_tensor_cycles(print):
    pass
print("\\n".join(said))
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER="perhaps", CUMEM_WARN_CYCLES=start)
    text = done.err if start else done.out
    assert text.strip() == ("cumem: CUMEM_DRIVER='perhaps' is not used: "
                            "not a switch: 'perhaps'; expected 1 or 0")


def test_a_forked_child_is_silent(fakes, tmp_path):
    run_ok(START + """
initialise()
with cumem.observe_tensor_cycles(print):
    blas.fake_allocate(0, BASE, MIB)
    child = os.fork()
    if child == 0:
        blas.fake_allocate(0, BASE + MIB, MIB)
        gc.collect()
        status = driver()
        os._exit(0 if (status["hook"], status["events"]) == ("none", 1) else 1)
    assert os.waitpid(child, 0)[1] == 0
    blas.fake_allocate(0, BASE + MIB, MIB)
    assert (driver()["hook"], driver()["events"]) == ("driver", 2)
assert not said
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)


def test_threads_that_call_the_driver_while_it_starts_and_stops(fakes, tmp_path):
    run_ok(START + """
import threading
initialise()
gc.set_threshold(50)
over = False
def churn(number):
    first = BASE + (number << 30)
    while not over:
        blas.fake_churn(first, 20, 10)
        [[i] for i in range(100)]
threads = [threading.Thread(target=churn, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for _ in range(30):
    with cumem.observe_tensor_cycles(print):
        held()
over = True
for thread in threads:
    thread.join()
with cumem.observe_tensor_cycles(print):
    blas.fake_churn(BASE, 100, 10)
    assert driver()["live_blocks"] == 0 and driver()["lost"] == 0, driver()
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)


def test_exit_while_a_thread_calls_the_driver(fakes, tmp_path):
    done = run(START + """
import threading, time
initialise()
cumem.observe_tensor_cycles(print)
threading.Thread(target=blas.fake_churn, args=(BASE, 100, 10**8), daemon=True).start()
time.sleep(0.3)
""", cwd=tmp_path, FAKES=fakes, CUMEM_DRIVER=1, CUMEM_WARN_CYCLES=0)
    assert (done.code, done.err) == (0, "")
