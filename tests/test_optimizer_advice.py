# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What is told of parameters that an optimizer has (graph/optimizer.h,
pyext/holders/pile.c): who else keeps them, else who gives it more.
"""

import pytest

from test_holder_advice import check_advice, stepped
from test_holders import ask, watched  # noqa: F401

torch = pytest.importorskip("torch")
nn = torch.nn


def one_optimizer_is_given_all():
    heads = [nn.Parameter(torch.zeros(3))]
    optimizer = stepped(heads)
    for _ in range(6):
        optimizer.add_param_group({"params": nn.Parameter(torch.zeros(3))})
    return ask([group["params"][0] for group in optimizer.param_groups])


def layers_aside_and_in_an_optimizer():
    aside = nn.ModuleList()
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(2))])
    for _ in range(6):
        aside.append(nn.Linear(2, 2, bias=False))
        optimizer.add_param_group({"params": aside[-1].parameters()})
    return ask([layer.weight for layer in aside])


@pytest.mark.parametrize("program, rule, words", [
    (one_optimizer_is_given_all, "optimizer is given more",
     ["make optimizer anew", "add_param_group() only adds"]),
    (layers_aside_and_in_an_optimizer, "modules pile up",
     ["modules of aside once", "make the optimizer anew"])])
def test_advice(program, rule, words):
    check_advice(program, rule, words)
