# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Growth that is asked for in the middle of a turn: what the call at work has is no leak."""

import pytest
from process import NODES, run_ok

PROGRAM = NODES + """
import torch.nn.functional as F

told = {}

class Ask(torch.nn.Module):
    def forward(self, x):
        if turn in (14, 15):
            told.update({(turn, row["frames"][0]["line"]): row["verdict"]
                         for row in cumem.growth()})
        return x * 1

class Own(torch.nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.seen = None
    def forward(self, x):
        if keeps:
            self.seen = x if self.seen is None else torch.cat([self.seen, x])
        for layer in self.layers:
            x = layer(x)
        return x
"""

LOOP = """
layers = torch.nn.Linear(256, 256), Ask(), torch.nn.GELU(), torch.nn.Linear(256, 256)
model = kind(*layers)
optimizer = torch.optim.AdamW(model.parameters())
with cumem.warn_tensor_cycles(min_bytes=0):
    for turn in range(1, 21):
        x = torch.randn(256 * (1 if keeps else turn), 256)
        optimizer.zero_grad()
        y = model(x + 0.1)
        loss = F.mse_loss(y, x)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("kind", ["torch.nn.Sequential", "Own"])
def test_batches_that_get_longer(kind, tmp_path):
    run_ok(PROGRAM + f"kind, keeps = {kind}, False\n" + LOOP + """
assert len(told) > 2 and set(told.values()) == {"growing"}, told
""", cwd=tmp_path)


def test_a_tensor_that_does(tmp_path):
    line = 1 + PROGRAM[:PROGRAM.index("torch.cat(")].count("\n")
    run_ok(PROGRAM + "kind, keeps = Own, True\n" + LOOP + f"""
assert (14, {line}) in told and told[14, {line}] == "leak", told
""", cwd=tmp_path)
