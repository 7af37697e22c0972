# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem.why_alive() of what autograd keeps: the steps between a loss and a saved tensor."""

import subprocess
import sys

import pytest

from process import SECONDS, environment, run_ok
from test_failing_memory import PROBE, STRIDE, library  # noqa: F401: a fixture


LOSSES = """
import gc, weakref
import torch, cumem

losses = []
def lines(ref, **options):
    return [str(path) for path in cumem.why_alive(ref(), **options)]
"""


# A tensor that only the graph behind a loss keeps.
HIDDEN = LOSSES + """
weight = torch.randn(4, requires_grad=True)
def make():
    hidden = torch.randn(4)
    losses.append((hidden * weight).sum())
    return weakref.ref(hidden)
hidden = make()
"""


def test_saved_tensor_behind_a_loss(tmp_path):
    done = run_ok(HIDDEN + """
gc.collect()
for line in lines(hidden):
    print(line)
(path,) = cumem.why_alive(hidden())
print([edge for _, edge in path.steps])
""", cwd=tmp_path)
    first, edges = done.out.strip().split("\n")
    assert first.startswith("`__main__.losses` (list, 1 item) > [0] (Tensor [] "), first
    assert "> grad_fn (SumBackward0) > next_functions[0] (MulBackward0) > saved > Tensor [4]" in first
    assert edges == "['', '.losses', '[0]', 'grad_fn', 'next_functions[0]', 'saved']"


def test_ways_through_two_graphs_and_a_step_held_by_itself(tmp_path):
    run_ok(LOSSES + """
weight = torch.randn(4, requires_grad=True)
def make():
    hidden = torch.randn(4)
    losses.append((hidden * weight).sum())
    losses.append((hidden * weight).exp().sum())
    return weakref.ref(hidden)
hidden = make()
two = sorted(lines(hidden), key=lambda line: "[1]" in line)
assert len(two) == 2 and "[0]" in two[0] and "[1]" in two[1] and "ExpBackward0" in two[1], two
step = losses[1].grad_fn.next_functions[0][0]
losses.clear()
(one,) = lines(hidden)
assert one.startswith("`__main__.step` (") and "next_functions[0] (MulBackward0) > saved > " in one, one
del step
assert hidden() is None
""", cwd=tmp_path)


def test_gradient_of_a_leaf_in_a_graph(tmp_path):
    """The leaf itself is held by the graph alone."""
    run_ok(LOSSES + """
def make():
    leaf = torch.randn(4, requires_grad=True)
    losses.append((leaf * 2).sum())
    return weakref.ref(leaf)
leaf = make()
(one,) = lines(leaf)
assert "(AccumulateGrad) > variable > Tensor [4]" in one, one
leaf().grad = torch.zeros(4)
grad = weakref.ref(leaf().grad)
(one,) = lines(grad)
assert one.split(" > ")[-2] == ".grad" and "AccumulateGrad" in one, one
""", cwd=tmp_path)


def test_gradient_of_a_parameter(tmp_path):
    """By the ways of the parameter, which the model has too; not by the loss alone, where that is nearer."""
    run_ok(LOSSES + """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(256, 256), nn.Linear(256, 8)
    def forward(self, x):
        return self.fc2(self.fc1(x).relu())
def main():
    model, kept = Net(), []
    opt = torch.optim.Adam(model.parameters())
    for _ in range(3):
        out = model(torch.randn(8, 256))
        loss = out.square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
    of_parameter = [str(path) for path in cumem.why_alive(model.fc1.weight, max_paths=10)]
    found = [str(path) for path in cumem.why_alive(model.fc1.weight.grad, max_paths=10)]
    assert len(found) == len(of_parameter) >= 3, found
    for way, one in zip(of_parameter, found):
        assert one.split(" > ")[1:-3] == way.split(" > ")[1:-2], (way, one)
        assert one.split(" > ")[-3].startswith(way.split(" > ")[-2] + " (Parameter"), (way, one)
        assert one.split(" > ")[-2] == ".grad" and one.split(" > ")[-1].startswith("Tensor [256, 256]"), one
    assert ".fc1 (" in found[1] and ".weight (Parameter" in found[1] and "grad_fn" not in found[1], found
    kept.append(model.fc1.weight.grad)
    first, second, *_ = cumem.why_alive(model.fc1.weight.grad)
    assert "local `kept`" in str(first) and ".grad" not in str(first) and ".grad" in str(second), first
main()
""", cwd=tmp_path)


def test_no_hook_unpacks_for_an_answer(tmp_path):
    run_ok(LOSSES + """
import torch.utils.checkpoint
calls = []
class Box:
    def __init__(self, tensor):
        self.tensor = tensor
def pack(tensor):
    return Box(tensor)
def unpack(box):
    calls.append(box)
    return box.tensor
weight = torch.randn(4, requires_grad=True)
def make():
    hidden = torch.randn(4)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        losses.append((hidden * weight).sum())
    return weakref.ref(hidden)
hidden = make()
checkpointed = torch.utils.checkpoint.checkpoint(lambda x: calls.append(x) or x * x, weight, use_reentrant=False)
calls.clear()
line, *_ = lines(hidden)
assert "[0] (Tensor []" in line and "saved packed (Box) > .tensor > Tensor [4]" in line, line
assert calls == [], calls
losses[0].backward()
assert len(calls) >= 1 and weight.grad is not None
""", cwd=tmp_path)


def test_long_chain_of_steps_is_shortened(tmp_path):
    run_ok(LOSSES + """
def make():
    leaf = torch.randn(4, requires_grad=True)
    total = leaf
    for _ in range(5000):
        total = total + 1.0
    losses.append(total)
    return weakref.ref(leaf)
leaf = make()
(path,) = cumem.why_alive(leaf())
assert len(path.steps) == 3 + 9 + 1, path.steps
assert ("... 4993 more ...", "") in path.steps, path.steps
assert path.steps[-2][0] == "AccumulateGrad" and path.steps[-1][1] == "variable", path.steps
""", cwd=tmp_path)


def test_torch_keeps_its_counts_when_asked(tmp_path):
    run_ok(HIDDEN + """
import sys
before = sys.getrefcount(hidden()), sys.getrefcount(losses[0]), sys.getrefcount(weight)
for _ in range(20):
    lines(hidden)
assert before == (sys.getrefcount(hidden()), sys.getrefcount(losses[0]), sys.getrefcount(weight))
losses.clear()
assert hidden() is None
""", cwd=tmp_path)


@pytest.mark.parametrize("from_then_on", [0, 1])
def test_each_allocation_of_a_walk_through_autograd_fails(tmp_path, library, from_then_on):  # noqa: F811
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", PROBE / "failing_ways.py",
         library, str(from_then_on), STRIDE],
        env=environment(LD_PRELOAD=library), cwd=tmp_path,
        capture_output=True, text=True, timeout=SECONDS * (1 if STRIDE != "1" else 20))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 50, done.stdout


def test_a_parameter_is_told_by_its_module_before_what_autograd_keeps(tmp_path):
    """One way from each variable first; a module's tables are not told."""
    done = run_ok(LOSSES + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
def main():
    net = Net()
    opt = torch.optim.AdamW(net.parameters())
    loss = net.body(torch.randn(4, 8)).sum()
    loss.backward(retain_graph=True)
    opt.step()
    for line in lines(weakref.ref(net.body[0].weight), max_paths=9):
        print(line)
main()
""", cwd=tmp_path)
    ways = [line.partition(": local ")[2] for line in done.out.splitlines()]
    assert [way.split()[0] for way in ways[:2]] == ["`opt`", "`net`"], done.out
    assert "> .body (torch.nn.modules.container.Sequential) > .0 (" in ways[1], done.out
    assert ") > .weight > Parameter [8, 8]" in ways[1], done.out
    assert "grad_fn" not in "".join(ways[:3]) and any("grad_fn" in way for way in ways), done.out
