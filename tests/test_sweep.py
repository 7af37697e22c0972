# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A sweep makes a model and an optimizer for each trial; whoever keeps the models is told of them."""

import pytest
from process import run_ok

SWEEP = """
import sys, torch
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


@pytest.mark.parametrize("steps", [3, 20])
def test_models_of_trials_that_a_list_keeps(steps, tmp_path):
    """Their gradients, which C++ holds, stay with them; the last trial's graph does not."""
    done = run_ok(SWEEP + f"""
def main():
    results = []
    for trial in range(30):
        results.append(train(0.1 / (1 + trial), {steps}))
        print("trial", trial, file=sys.stderr)
main()
""", cwd=tmp_path, CUMEM_WARN_CYCLES=1, OMP_NUM_THREADS=1)
    told = done.err[done.err.index("LEAK"):]
    assert "trial 20" in told, "while it runs"
    leak = told[:told.index("cyclereport")]
    assert "local `results` (list," in leak and "clear results when" in leak, leak
    assert "also " in leak and "#2" not in leak, "the gradients are of the same fault"
    assert "create_graph" not in done.err
