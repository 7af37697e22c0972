# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Growth in a function that gives what has grown to its caller: what that does with it decides."""

import pytest
from process import NODES, run_ok

SUMS = NODES + """
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh())
adapter = torch.nn.Linear(64, 64)
outer = torch.optim.Adam(model.parameters())
inner = torch.optim.SGD(adapter.parameters(), lr=0.01)
def adapt():
    x = torch.randn(256, 64)
    inner.zero_grad()
    adapter(x).square().mean().backward()
    inner.step()
    return (model(x) - 1).square().mean()
def losses(tasks):
    total = 0
    for task in tasks:
        total = total + adapt()
    return {result}
def step(tasks):
    outer.zero_grad()
    {call}
    outer.step()
cumem.warn_tensor_cycles(min_bytes=0)
seen = []
for _ in range(3):
    step(range(15))
"""


@pytest.mark.parametrize("result, call, told", [
    ("total / len(tasks)", "losses(tasks).backward()", False),
    ("total", "loss = losses(tasks) / 15; print(loss.item()); loss.backward()", False),
    ("total / len(tasks)", "seen.append(losses(tasks))", True),
    ("total", "mean = float(losses(tasks)); (mean * adapt()).backward()", True),
])
def test_a_sum_that_a_caller_takes_or_shows(result, call, told, tmp_path):
    done = run_ok(SUMS.replace("{result}", result).replace("{call}", call), cwd=tmp_path)
    assert ("#1 LEAK" in done.err) == told, done.err


FLUSHED = NODES + """
def flush(rows):
    {flush}
def fill(rows):
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(90):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        rows.append(torch.zeros(1 << 16))
        if len(rows) >= 30:
            {call}
cumem.warn_tensor_cycles(min_bytes=0)
fill([])
"""


@pytest.mark.parametrize("flush, call, told", [
    ("print(len(rows)); return []", "rows = flush(rows)", False),
    ("batch, rows = rows, []; torch.stack(batch); return rows", "rows = flush(rows)", False),
    ("torch.stack(rows); return rows", "rows = flush(rows)", True),
    ("if not rows: return []\n    return [row * 1 for row in rows]", "rows = flush(rows)", True),
])
def test_a_list_that_a_function_gives_back(flush, call, told, tmp_path):
    done = run_ok(FLUSHED.replace("{flush}", flush).replace("{call}", call), cwd=tmp_path)
    assert ("#1 LEAK" in done.err) == told, done.err
