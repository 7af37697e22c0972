# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Device allocations: torch's own libc10, a stand-in for its libc10_cuda.

The stand-in reports as the real one does, through the same call into the real
libc10 that is loaded; so all that needs no device is tested without one.
"""

import pathlib
import subprocess

import pytest

from process import NODES, run, run_ok

TESTS = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """A libc10_cuda.so whose calls go to whichever libc10.so is loaded."""
    folder = tmp_path_factory.mktemp("c10")
    for name, source, more in (("libc10.so", "fake_c10.c", []),
                               ("libc10_cuda.so", "fake_c10_cuda.c", ["-lc10"])):
        subprocess.run(
            ["cc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread", f"-Wl,-soname,{name}",
             str(TESTS / source), "-o", str(folder / name), f"-L{folder}", *more],
            check=True,
        )  # fmt: skip
    return folder / "libc10_cuda.so"


START = NODES + """
import ctypes
fake = ctypes.CDLL(os.environ["STAND_IN"])
fake.fake_report.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_int64)
fake.fake_pairs.argtypes = (ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
BASE = 0x7f0000000000

def allocate(address=BASE, size=512, device=0):
    fake.fake_report(1, device, address, size)

def free(address=BASE, size=512, device=0):
    fake.fake_report(1, device, address, -size)

def hook():
    return cumem.status()["allocator_hook"]
"""


def test_the_slot_is_heard_while_somebody_observes(stand_in, tmp_path):
    run_ok(START + """
allocate()
assert hook()["hook"] == "none" and hook()["events"] == 0
with cumem.observe_tensor_cycles(print):
    assert hook()["hook"] == "torch slot", hook()
    allocate(BASE + 512)
    assert (hook()["live_blocks"], hook()["live_bytes"]) == (1, 512)
    free(BASE)
    assert hook()["unknown_frees"] == 1
    free(BASE + 512)
    assert (hook()["live_blocks"], hook()["events"]) == (0, 3)
    assert hook()["mismatches"] == hook()["lost"] == 0
assert hook()["hook"] == "none"
allocate()
assert hook()["events"] == 3
with cumem.observe_tensor_cycles(print):
    allocate(BASE + 1024)
    assert hook()["events"] == 4
""", cwd=tmp_path, STAND_IN=stand_in)


def test_what_nobody_heard_of_is_not_held_against_the_next_start(stand_in, tmp_path):
    """Blocks that were freed meanwhile, and others at their addresses."""
    run_ok(START + """
from cumem import _core
def first():
    for device in range(3):
        allocate(BASE + (device << 30), device=device)
    allocate(BASE + 4096, 2048)
def second():
    allocate(BASE, 1024)
with cumem.observe_tensor_cycles(print):
    first()
    assert (hook()["live_blocks"], hook()["live_bytes"]) == (4, 3 * 512 + 2048), hook()
for device in range(3):
    free(BASE + (device << 30), device=device)
allocate(BASE, 1024)
with cumem.observe_tensor_cycles(print):
    assert (hook()["live_blocks"], hook()["live_bytes"]) == (0, 0), hook()
    free(BASE, 1024)
    second()
    (address, size, *_, frames), = _core.blocks()
    assert (address, size) == (BASE, 1024)
    assert [name for _, _, name in frames] == ["allocate", "second", "<module>"], frames
    assert hook()["unknown_frees"] == 1 and hook()["lost"] == 0, hook()
""", cwd=tmp_path, STAND_IN=stand_in)


def test_blocks_freed_between_two_watched_calls_are_no_leak(stand_in, tmp_path):
    run_ok(START + """
SIZE = 64 << 20
@cumem.watch()
def step(address):
    allocate(address, SIZE)
    cumem.step()
    return cumem.growth()
for address in range(BASE, BASE + 40 * SIZE, SIZE):
    grown = step(address)
    free(address, SIZE)
assert grown == [], grown
assert hook()["live_bytes"] == SIZE and hook()["events"] == 40, hook()
""", cwd=tmp_path, STAND_IN=stand_in)


def test_without_the_library_it_says_so(tmp_path):
    run_ok(NODES + """
with cumem.observe_tensor_cycles(print):
    hook = cumem.status()["allocator_hook"]
    assert hook["hook"] == "none" and "no CUDA" in hook["why"], hook
""", cwd=tmp_path)


def test_the_report_names_the_line_that_allocated(stand_in, tmp_path):
    done = run_ok(START + """
def storage():
    tensor = torch.zeros(1 << 20)
    allocate(tensor.data_ptr(), 4 << 20)  # the line
    return tensor

reports = []
with cumem.observe_tensor_cycles(lambda html: reports.append(html.report)):
    a = Node(storage())
    a.link = a
    del a
    gc.collect()
report, = reports
storage, = report["storages"]
site = next(s for s in report["sites"] if s["id"] == storage["site"])
frame = site["frames"][site["user_frame"]]
print(frame["name"], report["allocator_hook"])
""", cwd=tmp_path, STAND_IN=stand_in)
    assert done.out == "allocate torch slot\n"


FOREIGN = """
torch.cuda._lazy_init = lambda: None   # no driver: only addresses are looked at
class Of(ctypes.Structure):            # DLManagedTensor
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2),
                ("ndim", ctypes.c_int32), ("dtype", ctypes.c_uint8 * 4),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
kept = []
def capsule(address):
    shape = (ctypes.c_int64 * 1)(1 << 20)
    kept.append((shape, Of(address, (2, 0), 1, (2, 32, 1, 0), shape)))
    return new(ctypes.addressof(kept[-1][1]), b"dltensor", None)
class Array:
    def __init__(self, address):
        self.__cuda_array_interface__ = {"shape": (1 << 20,), "typestr": "<f4",
                                         "data": (address, False), "version": 3}
def over_dlpack(address): return torch.from_dlpack(capsule(address))
def over_interface(address): return torch.as_tensor(Array(address), device="cuda:0")
def over_array(address): return torch.asarray(capsule(address), copy=False)
def own(address):
    allocate(address, 4 << 20)
    return torch._C._from_dlpack(capsule(address))

def names(make):
    reports.clear()
    node = Node(make()); node.link = node
    del node
    gc.collect()
    report, = reports
    storage, = report["storages"]
    assert (storage["device"], storage["bytes"]) == ("cuda:0", 4 << 20), storage
    sites = {site["id"]: site for site in report["sites"]}
    return [frame["name"] for frame in sites[storage["site"]]["frames"]] if storage["site"] else []

reports = []
def observe():
    return cumem.observe_tensor_cycles(lambda html: reports.append(html.report), devices="cuda")
"""


def test_tensors_over_memory_of_others_have_the_stack_of_their_making(stand_in, tmp_path):
    """DLPack and the CUDA array interface: no block tells where they are from."""
    run_ok(START + FOREIGN + """
with observe():
    early = Node(over_dlpack(BASE)); early.link = early
    del early
    allocate(BASE - 512)
    reports.clear(); gc.collect()      # from here on no tensor asks for a stack
    (report,), names_of = reports, lambda site: [frame["name"] for frame in site["frames"]]
    assert "over_dlpack" in names_of(report["sites"][0]), "made before any block was heard of"
    for i, make in enumerate((over_dlpack, over_interface, over_array)):
        found = names(lambda: make(BASE + (i << 24)))
        assert make.__name__ in found and "<lambda>" in found, found
    for wrong in (torch.from_dlpack, torch.as_tensor, torch.asarray):
        try: wrong(object())           # an error ends it as well
        except (AttributeError, RuntimeError, TypeError): continue
        raise AssertionError(wrong)
    assert names(lambda: own(BASE + (9 << 24)))[:2] == ["allocate", "own"]
    detached = over_dlpack(BASE + (8 << 24)).detach
    assert names(detached) == [], "no stack is taken on the usual way"
with observe():                        # wrapped again, after it was taken back
    assert "over_dlpack" in names(lambda: over_dlpack(BASE))
assert torch.as_tensor([1, 2]).tolist() == torch.asarray([1, 2]).tolist() == [1, 2]
assert over_dlpack(BASE).data_ptr() == BASE
""", cwd=tmp_path, STAND_IN=stand_in)


RESTING = """
def address_of(name): return ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value
def is_hooked(cls=torch.Tensor):       # tp_alloc, behind 38 words of a type
    return ctypes.c_void_p.from_address(id(cls) + 304).value != address_of("PyType_GenericAlloc")
class Own(torch.Tensor): pass
def make(count, cls=torch.Tensor):
    for _ in range(count): torch.zeros(1).as_subclass(cls)
def forward():
    made = torch.ones(1, requires_grad=True)
    for _ in range(32): made = made * 2
torch.cuda._initialized = True         # nothing else waits for a tensor
"""


def test_tensors_are_told_of_only_while_somebody_waits_for_one(stand_in, tmp_path):
    run_ok(START + FOREIGN + RESTING + """
assert not is_hooked()
with observe() as handle:
    make(100, Own)
    assert is_hooked() and is_hooked(Own), "no block is known yet: each tensor needs a stack"
    allocate(BASE - 512)
    for _ in range(4):
        cumem.step()
        gc.collect()
        assert is_hooked(), "the forward pass is awaited"
        forward()
        make(100, Own)
        assert not is_hooked() and not is_hooked(Own)
        make(5000)                     # that end: nothing waits, they are let go
        assert not is_hooked()
        assert "over_dlpack" in names(lambda: over_dlpack(BASE))
        assert is_hooked(), "until the next tensor"
        make(100)
        assert not is_hooked()
    with cumem.observe_tensor_cycles(print, devices="cpu"):
        assert is_hooked() and is_hooked(Own), "now tensors count that no hook hears of"
        make(100, Own)
        assert is_hooked() and is_hooked(Own)
    cumem.step()
    forward()
    assert not is_hooked()
assert not is_hooked() and not is_hooked(Own)
""", cwd=tmp_path, STAND_IN=stand_in)


def test_tensors_are_told_of_where_no_iteration_ends(stand_in, tmp_path):
    run_ok(START + FOREIGN + RESTING + """
with observe() as handle:
    allocate(BASE - 512)
    gc.collect()
    make(5000)
    assert is_hooked(), "each slice of time ends with one of them"
assert not is_hooked()
""", cwd=tmp_path, STAND_IN=stand_in)


def test_no_stacks_when_they_are_off(stand_in, tmp_path):
    run_ok(START + """
with cumem.observe_tensor_cycles(print):
    allocate()
    assert hook()["live_blocks"] == 1
""", cwd=tmp_path, STAND_IN=stand_in, CUMEM_STACKS=0)


def test_threads_with_and_without_the_gil(stand_in, tmp_path):
    run_ok(START + """
import threading
gc.set_threshold(1)
class Churn(threading.Thread):
    def run(self):
        first = BASE + self.number * (1 << 30)
        for i in range(100):
            allocate(first + i * 512, device=self.number)
        fake.fake_pairs(self.number, first, 100, 50_000)
with cumem.observe_tensor_cycles(print):
    threads = [Churn() for _ in range(4)]
    for number, thread in enumerate(threads):
        thread.number = number
        thread.start()
    for thread in threads:
        thread.join()
    assert hook()["live_blocks"] == 400 and hook()["mismatches"] == 0, hook()
    assert hook()["events"] == 4 * (100 + 100_000)
""", cwd=tmp_path, STAND_IN=stand_in)


def test_r14_the_allocators_lock_and_the_gil(stand_in, tmp_path):
    """Threads with the GIL wait for the lock that others hold while we hear of
    their allocations: nothing there may wait for the GIL."""
    run_ok(START + """
import faulthandler, threading, time
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-5)
held = ctypes.PyDLL(os.environ["STAND_IN"])   # keeps the GIL
held.fake_pairs.argtypes = fake.fake_pairs.argtypes
stop = time.monotonic() + 2
def without(number):
    while time.monotonic() < stop:
        fake.fake_pairs(0, BASE + number * (1 << 30), 100, 1000)
def with_it(number):
    while time.monotonic() < stop:
        held.fake_pairs(0, BASE + number * (1 << 30), 100, 10)
        make_pair(16)
def look():
    while time.monotonic() < stop:
        gc.collect(); cumem.find_cycles(); cumem.status()
with cumem.observe_tensor_cycles(bool):
    threads = [threading.Thread(target=target, args=args) for target, args in (
        (without, (0,)), (without, (1,)), (with_it, (2,)), (with_it, (3,)), (look, ()))]
    [thread.start() for thread in threads]; [thread.join() for thread in threads]
    assert hook()["events"] > 10_000 and hook()["mismatches"] == 0, hook()
""", cwd=tmp_path, STAND_IN=stand_in)


# As an engine's thread does: no Python frame, while others wait.
WITHOUT_PYTHON = START + """
import threading
from cumem import _core
libc = ctypes.CDLL(None)
def allocate_without_python(address):
    handle = ctypes.c_uint64()
    function = ctypes.cast(fake.fake_from_thread, ctypes.c_void_p)
    assert libc.pthread_create(ctypes.byref(handle), None, function, ctypes.c_void_p(address)) == 0
    libc.pthread_join(handle, None)
class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step):
        ctx.step = step
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        ctx.step(grad)
        return grad, None
def block_at(address):
    (_, _, _, _, thread, awaited, frames), = [b for b in _core.blocks() if b[0] == address]
    return awaited, [name for _, _, name in frames]
"""


def test_a_thread_without_python_works_for_the_one_in_backward(stand_in, tmp_path):
    done = run_ok(WITHOUT_PYTHON + """
reports, seen = [], []
def step(grad):
    allocate_without_python(grad.data_ptr())
    seen.append(block_at(grad.data_ptr()))
    global keep
    keep = Node(grad)
    keep.link = keep
with cumem.observe_tensor_cycles(lambda html: reports.append(html.report)):
    x = torch.zeros(1 << 20, requires_grad=True)
    assert hook()["backward"] is True
    def train():
        Step.apply(x, step).sum().backward()
    train()
    (awaited, names), = seen
    # Where train() waits, not where the step runs that made the thread.
    assert awaited and names[-2:] == ["train", "<module>"], seen
    assert "step" not in names and any(n.endswith("backward") for n in names), seen
    allocate_without_python(BASE)   # nobody waits any more
    assert block_at(BASE) == (False, []), block_at(BASE)
    del keep
    x = None
    gc.collect()
report, = reports
sites = {site["id"]: site for site in report["sites"]}
names = [frame["name"] for s in report["storages"] if s["site"] for frame in sites[s["site"]]["frames"]]
print("train" in names, any(name.endswith("backward") for name in names))
""", cwd=tmp_path, STAND_IN=stand_in)
    assert done.out == "True True\n"


def test_of_several_threads_in_backward_none_is_named(stand_in, tmp_path):
    run_ok(WITHOUT_PYTHON + """
both, done = threading.Event(), threading.Event()
def first(grad):
    assert both.wait(30)
    allocate_without_python(BASE)
    done.set()
def second(grad):
    both.set()
    assert done.wait(30)
def train_a():
    Step.apply(torch.zeros(9, requires_grad=True), first).sum().backward()
def train_b():
    Step.apply(torch.zeros(9, requires_grad=True), second).sum().backward()
def alone(grad):
    allocate_without_python(BASE + 512)
def train_c():
    Step.apply(torch.zeros(9, requires_grad=True), alone).sum().backward()
with cumem.observe_tensor_cycles(print):
    threads = [threading.Thread(target=train) for train in (train_a, train_b)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert block_at(BASE) == (True, ["one of several threads in backward()"]), block_at(BASE)
    train_c()
    awaited, names = block_at(BASE + 512)
    assert awaited and "train_c" in names, names
""", cwd=tmp_path, STAND_IN=stand_in)


def test_a_backward_pass_within_one_is_the_one_that_waits(stand_in, tmp_path):
    """Past a depth of 60 torch hands the step to another thread, which then
    waits as well: they are one chain."""
    run_ok(WITHOUT_PYTHON + """
ran_in = set()
def within(depth):
    def step(grad):
        ran_in.add(threading.get_native_id())
        if depth == 1:
            allocate_without_python(BASE)
        else:
            with torch.enable_grad():
                innermost(depth - 1) if depth == 2 else outer(depth - 1)
    return step
def outer(depth):
    Step.apply(torch.zeros(9, requires_grad=True), within(depth)).sum().backward()
def innermost(depth):
    Step.apply(torch.zeros(9, requires_grad=True), within(depth)).sum().backward()
for depth in (3, 63):
    ran_in.clear()
    with cumem.observe_tensor_cycles(print):
        outer(depth)
        awaited, names = block_at(BASE)
        assert awaited and "innermost" in names, names
        free()
    assert len(ran_in) == (1 if depth == 3 else 2), ran_in
os._exit(0)  # torch aborts now and then at exit, without cumem too: its pool's thread outlives Python
""", cwd=tmp_path, STAND_IN=stand_in)


def test_every_live_block_can_be_listed(stand_in, tmp_path):
    done = run_ok(START + """
import threading
from cumem import _core
assert _core.blocks() == []
with cumem.observe_tensor_cycles(print):
    def outer():
        allocate(BASE, 512)
        allocate(BASE + 512, 1024, device=3)
    outer()
    allocate(BASE + 4096)
    free(BASE + 4096)
    first, second = sorted(_core.blocks())
    assert first[:4] == (BASE, 512, 0, 0) and second[:4] == (BASE + 512, 1024, 3, 0)
    assert first[4] == threading.get_native_id() and first[5] is False
    for block in (first, second):
        print([name for _, _, name in block[6]])
    (_, line, _), (_, second_line, _) = first[6][1], second[6][1]
    assert first[6][0][0] == "<string>" and second_line == line + 1
""", cwd=tmp_path, STAND_IN=stand_in)
    assert done.out == "['allocate', 'outer', '<module>']\n" * 2


def test_blocks_without_stacks_have_no_frames(stand_in, tmp_path):
    run_ok(START + """
from cumem import _core
with cumem.observe_tensor_cycles(print):
    allocate()
    (*_, frames), = _core.blocks()
    assert frames == [], frames
""", cwd=tmp_path, STAND_IN=stand_in, CUMEM_STACKS=0)


def test_run_backward_is_put_back(tmp_path, stand_in):
    run_ok(START + """
x = torch.ones(3, requires_grad=True)
for _ in range(3):
    with cumem.observe_tensor_cycles(print):
        (x * 2).sum().backward()
    assert hook()["backward"] is False
    (x * 2).sum().backward()
assert x.grad.tolist() == [12.0] * 3
with cumem.observe_tensor_cycles(print):
    try:
        torch.ones(3).sum().backward()
    except RuntimeError as error:
        print(error)
    else:
        raise AssertionError
""", cwd=tmp_path, STAND_IN=stand_in)


def test_a_forked_child_hears_nothing(stand_in, tmp_path):
    run_ok(START + """
with cumem.observe_tensor_cycles(print):
    allocate()
    child = os.fork()
    if child == 0:
        allocate(BASE + 512)
        os._exit(0 if hook()["hook"] == "none" and hook()["events"] == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert hook()["hook"] == "torch slot"
""", cwd=tmp_path, STAND_IN=stand_in)


def test_exit_with_a_thread_that_allocates(stand_in, tmp_path):
    done = run(START + """
import threading
cumem.observe_tensor_cycles(print)
threading.Thread(target=fake.fake_pairs, args=(0, BASE, 100, 10**12), daemon=True).start()
import time
time.sleep(0.3)
""", cwd=tmp_path, STAND_IN=stand_in)
    assert (done.code, done.err) == (0, "")


def test_a_node_of_autograd_has_its_forward_line(stand_in, tmp_path):
    run_ok(START + """
from cumem import _core
with cumem.observe_tensor_cycles(print):
    assert hook()["forward"] == "by autograd's own numbers", hook()
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = (y + 1).exp()
    numbers = [t.grad_fn._sequence_nr() for t in (y, z)]
    first, second = map(_core.forward_of, numbers)
    assert first and second and first != second
    assert _core.forward_of(numbers[1] + 1000) == 0
    import threading
    other = threading.Thread(target=lambda: x * 3)
    other.start(); other.join()
    assert _core.forward_of(numbers[0]) == 0 and "several" in hook()["forward"]
    # Numbers that the other one has not come near are this thread's again.
    def number():
        return (x * 2).grad_fn._sequence_nr()
    while (latest := number()) < 400:
        pass
    assert hook()["forward"].startswith("by autograd's own numbers"), hook()
    assert _core.forward_of(latest) and not _core.forward_of(numbers[0])
    other = threading.Thread(target=lambda: x * 3)   # far behind
    other.start(); other.join()
    assert _core.forward_of(latest) and hook()["forward"].startswith("by"), hook()
    def ahead():
        while number() < 1000:
            pass
        number.latest = number()
    other = threading.Thread(target=ahead)
    other.start(); other.join()
    assert not _core.forward_of(latest) and _core.forward_of(number.latest)
    number()                                          # now this one is behind
    assert not _core.forward_of(latest)
assert _core.forward_of(numbers[0]) == 0
""", cwd=tmp_path, STAND_IN=stand_in)


def test_the_node_that_runs_is_read_where_torch_keeps_it(stand_in, tmp_path):
    """Asked for at first; found by several nodes, in whatever thread they run."""
    run_ok(START + """
import threading
from cumem import _core
seen = []
def note(*gradients):
    node = torch._C._current_autograd_node()
    seen.append((_core.forward_running(), node._sequence_nr()))
def run(depth=8):
    x = torch.ones(3, requires_grad=True)
    for _ in range(depth):
        x = x * 2
        x.grad_fn.register_prehook(note)
    x.sum().backward()
with cumem.observe_tensor_cycles(print):
    assert _core.forward_running() is None
    allocate()
    run()
    assert "read in place" in hook()["forward"], hook()
    run()
    assert _core.forward_running() is None
    for _ in range(3):
        thread = threading.Thread(target=run)
        thread.start(); thread.join()
assert len(seen) == 40 and all(ours == torchs for ours, torchs in seen), seen
""", cwd=tmp_path, STAND_IN=stand_in)
