#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""driver.py LIBRARY [PART...]: the hook of CUDA's driver on a real GPU.

PARTs: injected, late, expandable, cost, cost_never, profiler, finalize (all).  Each runs in a
process of its own; all results go to stdout.  LIBRARY is libcumem_driver.so,
of which only the attach function is used.
"""

import collections
import ctypes
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

MIB = 1 << 20
KINDS = {1: "allocate", 2: "free"}


# -- allocator_hooks/{event,hook,driver}.h, in ctypes ------------------------

class Event(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("address", "bytes", "stream", "allocated", "reserved", "time_ns")]
    _fields_ += [("thread", ctypes.c_uint32), ("site", ctypes.c_uint32),
                 ("device", ctypes.c_int16), ("kind", ctypes.c_uint8),
                 ("awaited", ctypes.c_bool), ("library", ctypes.c_uint16)]


class Use(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("total", "used", "free", "own", "others")]


TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Event))
TEXT = ctypes.POINTER(ctypes.c_char_p)


class Sink(ctypes.Structure):
    _fields_ = [("event", ctypes.c_void_p), ("site", ctypes.c_void_p),
                ("context", ctypes.c_void_p)]


class Kind(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("start", ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(Sink),
                                   ctypes.c_char_p, TEXT)),
        ("stop", ctypes.CFUNCTYPE(None)),
        ("flush", ctypes.CFUNCTYPE(None)),
        ("lost", ctypes.CFUNCTYPE(ctypes.c_uint64))]


class Api(ctypes.Structure):
    _fields_ = [
        ("event_bytes", ctypes.c_size_t),
        ("hook", ctypes.POINTER(Kind)),
        ("trouble", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("library_name", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_uint16)),
        ("process_use", ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int,
                                         ctypes.POINTER(Use), TEXT))]


class Hook:
    """The hook; its sink keeps the events.  With native=True events go to a C
    function that does nothing, so that a measurement is not one of Python."""

    def __init__(self, path, native=False):
        library = ctypes.CDLL(path)
        library.cumem_driver_attach.restype = ctypes.POINTER(Api)
        self.api = library.cumem_driver_attach(1).contents
        assert self.api.event_bytes == ctypes.sizeof(Event), self.api.event_bytes
        self.kind = self.api.hook.contents
        self.events = []
        self._take = TAKE(self._keep)
        address = ctypes.cast(self._take, ctypes.c_void_p)
        if native:  # int labs(long): harmless with any arguments
            address = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p)
        self._sink = Sink(address, None, None)

    def _keep(self, _, event):
        event = event.contents
        self.events.append((KINDS[event.kind], event.address, event.bytes, event.device,
                            event.stream, self.name(event.library)))

    def name(self, number):
        return self.api.library_name(number).decode() or "?"

    def start(self):
        """None, or why not."""
        why = ctypes.c_char_p()
        started = self.kind.start(ctypes.byref(self._sink), find_cupti(), ctypes.byref(why))
        return None if started else why.value.decode()

    def trouble(self):
        self.kind.flush()
        text = self.api.trouble()
        return text and text.decode()

    def use(self):
        use, why = Use(), ctypes.c_char_p()
        begun = time.perf_counter()
        known = self.api.process_use(0, ctypes.byref(use), ctypes.byref(why))
        took = (time.perf_counter() - begun) * 1e3
        values = {name: round(getattr(use, name) / MIB)
                  if getattr(use, name) != 2**64 - 1 else None
                  for name, _ in Use._fields_} if known else None
        return values, why.value and why.value.decode(), f"{took:.3f} ms"


def find_cupti():
    """The one of torch's wheel, for where none is in the process yet."""
    for folder in sys.path:
        for found in glob.glob(f"{folder}/nvidia/**/libcupti.so.1[23]", recursive=True):
            return found.encode()
    return None


def live_by_library(events):
    live, result = {}, collections.Counter()
    for kind, address, size, _, _, library in events:
        if kind == "allocate":
            live[address] = (size, library)
        else:
            live.pop(address, None)
    for size, library in live.values():
        result[library] += size
    return {library: f"{size / MIB:.1f} MiB" for library, size in result.most_common()}


def say(what, *values):
    print(f"  {what}:", *values, flush=True)


def cudart():
    """libcudart, as torch has loaded it."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "libcudart" in line:
                return ctypes.CDLL(line.split()[-1])
    return ctypes.CDLL("libcudart.so.13")


# -- parts: what is seen -----------------------------------------------------

def exercise(hook):
    import torch
    mark = len(hook.events)

    def seen(what):
        nonlocal mark
        fresh, mark = hook.events[mark:], len(hook.events)
        say(f"{what}: {len(fresh)} events", [(k, f"{b / MIB:.2f} MiB", hex(a), n)
                                             for k, a, b, _, _, n in fresh[:6]])

    a = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    seen("torch.empty of 64 MiB, a segment")
    b = torch.randn(512, 512, device="cuda")
    (b @ b).sum().item()
    seen("a matrix product (cuBLAS handle and workspace)")
    torch.nn.functional.conv2d(torch.randn(8, 3, 64, 64, device="cuda"),
                               torch.randn(8, 3, 3, 3, device="cuda")).sum().item()
    seen("a convolution (cuDNN)")
    runtime, pointer = cudart(), ctypes.c_void_p()
    for name, *arguments in (("cudaMalloc", 2 * MIB), ("cudaMallocAsync", 3 * MIB, None),
                             ("cudaMallocManaged", 4 * MIB, 1)):
        function = getattr(runtime, name)
        result = function(ctypes.byref(pointer), *(
            ctypes.c_size_t(x) if isinstance(x, int) and x > 1 else x for x in arguments))
        if name == "cudaMallocAsync":
            runtime.cudaFreeAsync(pointer, None)
        else:
            runtime.cudaFree(pointer)
        seen(f"{name} and its free by ctypes, result {result}")
    result = runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 50))
    runtime.cudaGetLastError()
    seen(f"a cudaMalloc of a PiB, result {result}")
    del a
    torch.cuda.empty_cache()
    seen("empty_cache")
    say("live by library", live_by_library(hook.events))
    say("torch's own count", f"{torch.cuda.memory_reserved() / MIB:.1f} MiB reserved")
    say("process_use, MiB", hook.use())
    say("process_use again", hook.use()[2], hook.use()[2])
    say("lost", hook.kind.lost(), "trouble", hook.trouble())


def part_injected(path):
    """CUDA_INJECTION64_PATH: subscribed within cuInit, attached later."""
    import torch
    first = torch.zeros(1, device="cuda")
    say("loaded by the driver", any("libcumem_driver" in line for line in open("/proc/self/maps")))
    hook = Hook(path)
    say("attach refused", hook.start())
    say("told at once", hook.events)
    exercise(hook)
    del first
    hook.kind.stop()


def part_late(path):
    """Subscribed at run time, before CUDA is initialised."""
    import torch
    hook = Hook(path)
    say("process_use before CUDA", hook.use()[:2])
    say("start refused", hook.start())
    cuda = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int()
    say("did subscribing initialise CUDA (3: no, 0: yes)?",
        cuda.cuDeviceGetCount(ctypes.byref(count)))
    torch.cuda.init()
    torch.cuda.synchronize()
    say("events of the context", hook.events, "process_use, MiB", hook.use())
    exercise(hook)
    runtime, before = cudart(), len(hook.events)
    say("cudaDeviceReset", runtime.cudaDeviceReset(), f"{len(hook.events) - before} events",
        "live", live_by_library(hook.events))
    hook.kind.stop()
    os._exit(0)  # torch cannot live without its context


def part_expandable(path):
    """cuMemCreate, cuMemMap: torch's expandable segments."""
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    import torch
    hook = Hook(path)
    say("start refused", hook.start())
    a = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
    say("live", live_by_library(hook.events), f"{torch.cuda.memory_reserved() / MIB:.1f} MiB")
    say("first", hook.events[:2])
    del a
    torch.cuda.empty_cache()
    say("live after empty_cache", live_by_library(hook.events),
        f"{torch.cuda.memory_reserved() / MIB:.1f} MiB reserved")
    hook.kind.stop()


# -- parts: cost -------------------------------------------------------------

def microseconds(function, times):
    begun = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - begun) / times * 1e6


def cases(torch):
    """name: (function, how often in a turn)"""
    torch.cuda.init()
    x = torch.zeros(16, device="cuda")
    runtime, pointer = cudart(), ctypes.c_void_p()
    size, reference = ctypes.c_size_t(2 * MIB), ctypes.byref(pointer)

    def malloc_free():
        runtime.cudaMalloc(reference, size)
        runtime.cudaFree(pointer)

    def malloc_async():
        runtime.cudaMallocAsync(reference, size, None)
        runtime.cudaFreeAsync(pointer, None)

    def empty():
        torch.empty(MIB, dtype=torch.uint8, device="cuda")

    def launches():  # 100 each, and waits: the queue is never full
        for _ in range(100):
            x.add_(1)
        torch.cuda.synchronize()

    found = {"cudaMalloc + cudaFree of 2 MiB": (malloc_free, 200),
             "cudaMallocAsync + cudaFreeAsync of 2 MiB": (malloc_async, 500),
             "torch.empty + free of 1 MiB, cached": (empty, 5000),
             "100 kernel launches and a wait": (launches, 50)}
    for function, _ in found.values():
        microseconds(function, 50)
    return found


def part_cost(path):
    """With and without, off on on off within one process; 30 turns."""
    import torch
    hook, times = Hook(path, native=True), collections.defaultdict(list)
    all_cases = cases(torch)
    for turn in range(30):
        on = turn % 4 in (1, 2)
        why = hook.start() if on else None
        if why:
            say("refused", why)
            return
        for name, (function, count) in all_cases.items():
            times[name, on].append(microseconds(function, count))
        if on:
            hook.kind.stop()
    for name in all_cases:
        off, on = (statistics.median(times[name, state]) for state in (False, True))
        spread = statistics.quantiles(times[name, False], n=4)
        say(name, f"{off:.2f} us off, {on:.2f} us on, {on - off:+.2f} us, {on / off:.3f}x"
            f" (off quartiles {spread[0]:.2f} to {spread[2]:.2f})")


def part_cost_never(path):
    """The same where CUPTI was never subscribed: what stays after us."""
    import torch
    all_cases, times = cases(torch), collections.defaultdict(list)
    for _ in range(15):
        for name, (function, count) in all_cases.items():
            times[name].append(microseconds(function, count))
    for name, values in times.items():
        say(name, f"{statistics.median(values):.2f} us")


# -- parts: beside other users of CUPTI --------------------------------------

def profile(torch):
    from torch.profiler import ProfilerActivity, profile as profiler
    with profiler(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as run:
        (torch.ones(256, 256, device="cuda") @ torch.ones(256, 256, device="cuda")).sum().item()
    return sum(str(event.device_type).endswith("CUDA") for event in run.events())


def part_profiler(path):
    import torch
    torch.zeros(1, device="cuda")
    mode = os.environ.get("CUMEM_BENCH_MODE", "without")
    hook = Hook(path)
    if mode == "first":
        say("start refused", hook.start())
    say("CUDA events that torch.profiler recorded", profile(torch), profile(torch))
    if mode == "first":
        hook.kind.stop()
        say("after we stopped", profile(torch))
    else:
        say("start refused after torch.profiler", hook.start())
    say("trouble", hook.trouble())


def part_finalize(path):
    """Another tool shuts CUPTI down."""
    import torch
    torch.zeros(1, device="cuda")
    hook = Hook(path)
    say("start refused", hook.start())
    for line in open("/proc/self/maps"):
        if "libcupti" in line:
            say("cuptiFinalize", ctypes.CDLL(line.split()[-1]).cuptiFinalize())
            break
    say("trouble", hook.trouble())
    before = len(hook.events)
    torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    say("events afterwards", len(hook.events) - before)
    hook.kind.stop()
    say("start again refused", hook.start())
    torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
    say("events then", len(hook.events) - before)


PARTS = [  # name, environment
    ("injected", {"CUDA_INJECTION64_PATH": "{path}"}),
    ("late", {}),
    ("expandable", {}),
    ("cost", {}),
    ("cost_never", {}),
    ("profiler", {"CUMEM_BENCH_MODE": "without"}),
    ("profiler", {"CUMEM_BENCH_MODE": "first"}),
    ("profiler", {"CUMEM_BENCH_MODE": "first", "TEARDOWN_CUPTI": "1"}),
    ("finalize", {}),
]


def main():
    path = os.path.abspath(sys.argv[1])
    if len(sys.argv) == 4 and sys.argv[2] == "--child":
        return globals()["part_" + sys.argv[3]](path)
    import torch
    print(json.dumps({"python": sys.version.split()[0], "torch": torch.__version__,
                      "cuda": torch.version.cuda}))
    if shutil.which("nvidia-smi"):
        subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv"])
    wanted = sys.argv[2:]
    for name, extra in PARTS:
        if wanted and name not in wanted:
            continue
        extra = {key: value.format(path=path) for key, value in extra.items()}
        print(f"== {name} {extra or ''}", flush=True)
        try:
            done = subprocess.run([sys.executable, __file__, path, "--child", name],
                                  env={**os.environ, **extra}, timeout=120)
            print(f"  exit {done.returncode}", flush=True)
        except subprocess.TimeoutExpired:
            print("  no end within 120 s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
