# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A sweep makes a model and an optimizer for each trial; whoever keeps the models is told of them."""

import pytest
from process import run_ok

SWEEP = """
import sys, torch, cumem
from torch import nn

def train(rate, steps):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(steps):
        x = torch.randn(32, 256)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item(), model
"""


@pytest.mark.parametrize("steps, rate", [(3, "2.0 MiB"), (20, "102 KiB"), (50, "41 KiB")])
def test_models_of_trials_that_a_list_keeps(steps, rate, tmp_path):
    """Their gradients, which C++ holds, stay with them; the last trial's graph does not."""
    done = run_ok(SWEEP + f"""
def main():
    results = []
    for trial in range(30):
        results.append(train(0.1 / (1 + trial), {steps}))
        cumem.flush(30)  # a thread of its own writes, and a trial takes some ms
        print("trial", trial, file=sys.stderr)
main()
""", cwd=tmp_path, CUMEM_WARN_CYCLES=1, OMP_NUM_THREADS=1)
    told = done.err[done.err.index("LEAK"):]
    assert told.startswith(f"LEAK +{rate} per iteration"), "2.0 MiB a trial, by its iterations"
    assert "trial 20" in told, "while it runs"
    leak = told[:told.index("cyclereport")]
    assert "local `results` (list," in leak and "clear results when" in leak, leak
    assert "also " in leak and "#2" not in leak, "the gradients are of the same fault"
    assert "create_graph" not in done.err


def test_each_sample_has_a_model_that_steps_once(tmp_path):
    """Test-time training: no optimizer ever steps again."""
    done = run_ok("""
import copy, sys, torch, cumem
from torch import nn
def main():
    base, adapted = nn.Linear(512, 512), []
    for number in range(80):
        model = copy.deepcopy(base)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(32, 512)).pow(2).mean().backward()
        optimizer.step()
        adapted.append(model)
        cumem.flush(30)
        print("sample", number, file=sys.stderr)
main()
""", cwd=tmp_path, CUMEM_WARN_CYCLES=1, OMP_NUM_THREADS=1)
    told = done.err[done.err.index("LEAK +2.0 MiB per iteration"):]
    assert "sample 60" in told and "local `adapted` (list," in told, told
    assert "#2" not in told


def test_gradients_of_what_each_iteration_adds(tmp_path):
    """The loss has them all behind it, by its graph; the parameters have them, and stay."""
    done = run_ok("""
import torch
from torch import nn
class Adapter(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.weight = inner, nn.Parameter(torch.zeros(512, 512))
    def forward(self, x):
        return self.inner(x) + x @ self.weight
def main():
    block = nn.Linear(512, 512).requires_grad_(False)
    for _ in range(24):
        block = Adapter(block)
        optimizer = torch.optim.SGD([block.weight], lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = block(torch.randn(16, 512)).pow(2).mean()
            loss.backward()
            optimizer.step()
main()
""", cwd=tmp_path, CUMEM_WARN_CYCLES=1, OMP_NUM_THREADS=1)
    told = done.err[done.err.index("LEAK"):]
    assert "local `block` (Adapter)" in told and "local `loss`" not in told, told


@pytest.mark.parametrize("metric", ["out.abs().mean().item()", "0.9 * mean + 0.1 * loss.detach()"])
def test_a_metric_after_the_step_is_no_forward_pass(metric, tmp_path):
    done = run_ok(f"""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
mean = 0.0
for _ in range(40):
    optimizer.zero_grad()
    out = net(torch.randn(256, 256))
    loss = out.pow(2).mean()
    loss.backward()
    optimizer.step()
    mean = {metric}
""", cwd=tmp_path, CUMEM_WARN_CYCLES=1, OMP_NUM_THREADS=1)
    assert done.err == ""
