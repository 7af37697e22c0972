# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What stands behind a tensor in C++: read from memory, running nothing of the program's."""

import pytest

from process import run_ok

pytest.importorskip("torch")

START = """
import gc, json, random, sys, threading, weakref
import torch, cumem
from cumem import _core
from torch.utils.checkpoint import checkpoint
from torch.autograd.graph import saved_tensors_hooks

MIB = 1 << 20
handle = cumem.observe_tensor_cycles(lambda page: pages.append(page))
pages = []
assert cumem.status()["autograd"] == "struct layout", cumem.status()["autograd"]

def behind(tensor):
    return _core.autograd_behind(tensor)

def going(tensor):
    return {address for address, size, device, leaf, goes in behind(tensor)["storages"]
            if goes and not leaf}

def leaf(*shape):
    return torch.ones(*(shape or (512, 512)), requires_grad=True)

def cycles(kind="uncollectable"):
    return [c for c in cumem.find_cycles().report["cycles"] if c["class"] == kind]

class Step:
    def __init__(self, loss):
        self.loss, self.me = loss, self

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y.clone()
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
"""


def program(code, tmp_path, **variables):
    done = run_ok(START + code + "\nprint('whole')", cwd=tmp_path, **variables)
    assert done.lines[-1] == "whole", done.out
    return done


def test_what_is_saved_and_what_of_it_goes(tmp_path):
    program("""
x = leaf()
y = x.exp().exp()
assert behind(y)["nodes"] == 3 and behind(y)["length"] == 3
assert behind(y)["bytes"] == behind(y)["retained"] == MIB  # without its own
middle = x.exp()
y = middle.exp()
assert behind(y)["bytes"] == MIB and behind(y)["retained"] == 0
del middle
assert behind(y)["retained"] == MIB
z = y * 3
assert behind(y)["retained"] == 0, "also behind z"
del z
indices = x[torch.tensor([0, 1]), torch.tensor([1, 0])]
assert behind(indices)["bytes"] == 32
once = Twice.apply(x)
assert behind(once)["bytes"] == MIB and behind(once)["retained"] == MIB
assert behind(once.grad_fn)["nodes"] == 2
with torch.no_grad():
    assert behind(x.exp())["nodes"] == 0
with torch.inference_mode():
    assert behind(x.exp())["nodes"] == 0
assert behind(3) is None and behind(torch) is None and behind(type) is None
""", tmp_path)


def test_a_number_that_looks_like_a_tensor_is_none(tmp_path):
    """A node's Scalars have words that nobody wrote: here one is a tensor's address."""
    program("""
other, x = leaf(4), torch.ones(256, 16)
up, bias, weight = torch.nn.Linear(16, 1024), leaf(10), leaf(10, 1024)
for numbers in ({}, {"beta": other._cdata}, {"alpha": other._cdata}):
    loss = torch.addmm(bias, torch.tanh(up(x)), weight.t(), **numbers).sum()
    assert loss.grad_fn.next_functions[0][0].name() == "AddmmBackward0"
    found = behind(loss)
    assert found["retained"] == MIB, (numbers, found)
""", tmp_path)


def test_bytes_drop_when_a_backward_pass_frees_the_graph(tmp_path):
    program("""
x = leaf()
loss = x.exp().exp().sum()
assert behind(loss)["bytes"] == 2 * MIB
loss.backward(retain_graph=True)
assert behind(loss)["bytes"] == 2 * MIB
loss.backward()
assert behind(loss)["bytes"] == 0 and behind(loss)["nodes"] == 4
grad, = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
assert behind(grad)["retained"] >= MIB and grad.grad_fn is not None
once = Twice.apply(x)
once.sum().backward()
assert behind(once)["bytes"] == 0, "a Function's saved tensors are gone too"
""", tmp_path)


def test_nothing_is_unpacked_and_no_forward_runs_again(tmp_path):
    program("""
calls = {"forward": 0, "pack": 0, "unpack": 0, "hook": 0}

def forward(x):
    calls["forward"] += 1
    return x.exp().exp()

def pack(tensor):
    calls["pack"] += 1
    return tensor.detach().clone()

def unpack(packed):
    calls["unpack"] += 1
    return packed

def hook(grad):
    calls["hook"] += 1

x = leaf()
for reentrant in (True, False):
    with saved_tensors_hooks(pack, unpack):
        y = checkpoint(forward, x, use_reentrant=reentrant)
        z = y.exp() * y
    z.register_hook(hook)
    z.grad_fn.register_hook(hook)
    z.grad_fn.register_prehook(hook)
    before = dict(calls)
    found = behind(z)
    step = Step(z)
    cumem.find_cycles()
    assert found["bytes"] > 0 and found["nodes"] >= 3, found
    del step, y, z
    gc.collect()
    assert calls == before, (before, calls)
assert pages and "Step" in pages[-1]
""", tmp_path)


def test_a_chain_is_walked_without_recursion_and_bounded(tmp_path):
    program("""
total = torch.zeros((), requires_grad=True)
for _ in range(100_000):
    total = total + 1.0
found = behind(total)
assert found["nodes"] == found["length"] == 100_001, found
assert not found["cut"]
held = leaf().exp()
step = Step(total + held.sum())
size = behind(step.loss)["nodes"]
assert size >= 100_003
del total, held, step
gc.collect()
report = pages[-1].report
assert len(report["cycles"]) == 1
assert any("deep" in v["annotation"] for v in report["vertices"])
""", tmp_path)


def test_a_dead_cycle_carries_what_goes_with_its_loss(tmp_path):
    program("""
x = leaf()
step = Step(x.exp().exp().sum())
del step
gc.collect()
report = pages.pop().report
cycle, = report["cycles"]
assert cycle["bytes_each"] == 2 * MIB + 4, cycle
assert {e["kind"] for e in report["edges"]} >= {"autograd", "saved"}
assert {v["kind"] for v in report["vertices"]} >= {"grad_fn", "tensor"}
assert any(v["annotation"] == "SumBackward0, 4 deep" for v in report["vertices"])
assert x.grad is None and torch.equal(x, torch.ones(512, 512))

shared = x.exp()
other = shared.exp()  # lives on, and with it what it saved
step = Step(shared.exp().sum())
del step
assert cumem.find_cycles().report["cycles"][0]["bytes_each"] == 4 + MIB
gc.collect()
assert pages.pop().report["cycles"][0]["bytes_each"] == 4 + MIB
other.sum().backward()
""", tmp_path)


def test_equal_cycles_fold_and_nothing_is_counted_twice(tmp_path):
    program("""
shared = leaf().exp()
Step(shared.exp().sum()), Step(shared.exp().sum())
del shared
report = cumem.find_cycles().report
total = sum(c["total_bytes"] for c in report["cycles"])
gc.collect()
again = sum(c["total_bytes"] for c in pages[-1].report["cycles"])
assert total == again == 4 * MIB + 8, (total, again)
""", tmp_path)


LEAKS = {
    "hook": """
    y = leaf() * 2
    y.register_hook(lambda grad: grad * y)
""",
    "prehook of a step": """
    y = leaf() * 2
    y.grad_fn.register_prehook(lambda grads: print(y))
""",
    "hook of a step": """
    y = leaf() * 2
    y.grad_fn.register_hook(lambda a, b: print(y))
""",
    "hook of an earlier step": """
    y = leaf() * 2
    z = y.exp().exp()
    y.register_hook(lambda grad: grad * z)
    y = z
""",
    "packed": """
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = leaf().exp()
""",
    "packed in a tuple": """
    with saved_tensors_hooks(lambda t: [t], lambda t: t[0]):
        y = leaf().exp()
""",
    "context of an earlier Function": """
    y = Twice.apply(leaf())
    y.grad_fn.later = z = y * 3
    y = z
""",
    "post-accumulate hook": """
    y = leaf()
    z = y * 2
    z.register_hook(lambda grad: z)
    y.register_post_accumulate_grad_hook(lambda p: print(z))
""",
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_no_collector_frees_is_found_and_really_stays(tmp_path, name):
    program(f"""
def leak():{LEAKS[name]}    return weakref.ref(y)
gone = leak()
gc.collect()
assert gone() is not None, "not a leak"
found = cycles()
assert len(found) == 1 and found[0]["bytes_each"] >= MIB, found
assert found[0]["advice"] and "uncollectable" == found[0]["class"]
assert gone() is not None
""", tmp_path)


def test_an_address_of_a_hook_that_nobody_wrote_is_none(tmp_path):
    """A tensor's name has a buffer that is never filled: here it leads to its hook."""
    program(f"""
import ctypes
layout = _core.autograd_probe("layout")
def fields(tensor):
    impl = (ctypes.c_uint64 * 8).from_address(tensor._cdata)
    return (ctypes.c_uint64 * 22).from_address(impl[layout["impl_meta"] // 8])
def leak():
    without = fields(leaf())[:]{LEAKS["post-accumulate hook"]}
    words = fields(y)
    new = [i for i in range(12, 22) if not without[i] and words[i] > 1 << 16]
    words[layout["meta_grad"] // 8 - 1] = words[new[0]]
    return weakref.ref(y)
gone = leak()
gc.collect()
assert gone() is not None, "not a leak"
found = cycles()
assert len(found) == 1 and found[0]["bytes_each"] >= MIB, found
""", tmp_path)


LIVE = {
    "held": "global kept; kept = y",
    "its result is held": "global kept; kept = y.exp()",
    "held by a tuple": "global kept; kept = (y,)",
    "a step is held": "global kept; kept = y.grad_fn",
    "a view is held": "global kept; kept = y.view(-1)",
    "a detached view is held": "pass",
    "the hook is held": "global kept; kept = y._backward_hooks",
    "a thread holds it": "global kept; kept = threading.Thread(target=lambda: y)",
}


@pytest.mark.parametrize("name", LIVE)
def test_what_somebody_holds_is_no_finding(tmp_path, name):
    captures = "0" if name == "a detached view is held" else "y"
    program(f"""
def hold():
    y = leaf() * 2
    y.register_hook(lambda grad: grad * {captures})
    with saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        z = y.exp()
    {LIVE[name]}
hold()
gc.collect()
assert cycles() == [], cycles()
""", tmp_path)


def test_a_removed_hook_is_no_finding(tmp_path):
    program("""
y = leaf() * 2
handle_of_hook = y.register_hook(lambda grad: grad * y)
gone = weakref.ref(y)
handle_of_hook.remove()
del y
gc.collect()
assert gone() is None and cycles() == []
""", tmp_path)


def test_what_is_said_to_go_goes(tmp_path):
    """Random graphs: the storages that are said to go with a tensor, and no others, do.

    Which are there is seen from a tensor that was made of each, and saved by nothing else.
    """
    program("""
for seed in range(60):
    rng = random.Random(seed)
    made = [leaf(64) for _ in range(3)]
    for _ in range(rng.randrange(3, 25)):
        a, b = rng.choice(made), rng.choice(made)
        made.append(rng.choice([
            lambda: a * b, lambda: a + b, lambda: (a * 1).view(8, 8).reshape(64) * b,
            lambda: Twice.apply(a) * b, lambda: torch.lerp(a, b, 0.5), lambda: torch.maximum(a, b),
            lambda: torch.where(a > 0, a, b), lambda: a.detach().exp().requires_grad_() * b,
        ])())
    last = made[-1] * made[0]
    kept = [t for t in made[3:] if rng.random() < 0.2]
    places = {t.data_ptr(): weakref.ref(t) for t in made[3:]}
    del made, a, b
    before = {p for p in places if places[p]() is not None}
    said = going(last) & before
    del last
    after = {p for p in before if places[p]() is not None}
    assert said == before - after, (seed, len(said), len(before), len(after))
    told.append(len(said))
    del kept
assert sum(told) > 60, told
""".replace("for seed", "told = []\nfor seed", 1), tmp_path)


def test_backward_passes_in_other_threads(tmp_path):
    program("""
stop = threading.Event()
x = leaf(64, 64)

def train():
    while not stop.is_set():
        loss = x.exp().exp().sum()
        Step(loss)
        loss.backward()

threads = [threading.Thread(target=train) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(300):
    loss = (x.exp() * x).sum()
    assert behind(loss)["nodes"] == 4
    loss.backward()
    behind(loss)
for _ in range(3):
    cumem.find_cycles()
    gc.collect()
stop.set()
for thread in threads:
    thread.join()
assert cumem.status()["lost"]["no_memory"] == 0
""", tmp_path)


def test_learning_takes_nothing_of_the_program(tmp_path):
    done = run_ok("""
import gc, torch
from torch.utils.hooks import RemovableHandle
number, state = RemovableHandle.next_id, torch.get_rng_state()
import cumem
packed = []
def pack(tensor):
    packed.append(tensor)
    return tensor
with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    handle = cumem.observe_tensor_cycles(print)
    gc.collect()
assert not packed, "our tensors went through the program's hooks"
gc.collect()
assert cumem.status()["autograd"] == "struct layout"
assert RemovableHandle.next_id == number and torch.equal(torch.get_rng_state(), state)
from cumem import _autograd, _core
seen = set()
for _ in range(200):
    _autograd._probe(torch)
    seen.add(tuple(_core.autograd_probe("layout").items()))
assert len(seen) == 1, seen
for wrong in (("learn", {}, int), ("learn", 1, 2), ("nothing",), ("ready", 1)):
    try:
        _core.autograd_probe(*wrong)
    except (RuntimeError, ValueError):
        continue
    raise AssertionError(wrong)
assert "unsupported" in cumem.status()["autograd"]
assert _core.autograd_behind(torch.ones(1)) is None
class Misled:
    def __init__(self, wrong):
        self.wrong, self.searches = wrong, 0
    def autograd_probe(self, step, *rest):
        answer = _core.autograd_probe(step, *rest)
        if step == "layout":
            self.searches += 1
            if self.searches in self.wrong:
                answer["meta_grad"] = self.searches
        return answer
_autograd._core = misled = Misled({1})
_autograd.probe()
assert misled.searches == 3 and cumem.status()["autograd"] == "struct layout"
_autograd._core = Misled({1, 2, 3, 4})
try:
    _autograd.probe()
except RuntimeError as error:
    assert str(error) in cumem.status()["autograd"] and "no two searches" in str(error)
else:
    raise AssertionError("learnt what no two searches have found")
assert _core.autograd_behind(torch.ones(1)) is None
_autograd._core = _core
class Sneaky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad
    next_functions = property(lambda self: 1 / 0)
x = torch.ones(3, requires_grad=True)
found = _autograd.behind(Sneaky.apply(x).exp() * x)  # torch's getters alone
assert found["nodes"] == 4 and found["bytes"] is None and not found["cut"], found
assert _autograd.behind(x)["nodes"] == 0 and _autograd.behind(3) is None
""", cwd=tmp_path)
    assert done.out == ""
