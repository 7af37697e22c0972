# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The state of a recurrent network, handed on as a tuple: which variable keeps the graph, and what to write."""

import pytest

from test_holder_advice import Programs, check_advice, nn, torch
from test_holders import ask, watched  # noqa: F401

program = Programs()


@program("state keeps its graph", "`state = tuple(x.detach() for x in state)`")
def state_of_an_lstm():
    lstm, state = nn.LSTM(2, 3), None
    for _ in range(9):
        out, state = lstm(torch.zeros(4, 1, 2), state)
        out.sum()
    return ask([out, *state], depth=30)


@program("state keeps its graph", "`carried = tuple(x.detach() for x in carried)`")
def state_of_two_layers():
    first, second, carried = nn.RNNCell(2, 3), nn.RNNCell(3, 3), (torch.zeros(4, 3),) * 2
    for _ in range(9):
        low = first(torch.zeros(4, 2), carried[0])
        high = second(low, carried[1])
        carried = (low, high)
    return ask([low, high], depth=30)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.pair = nn.LSTMCell(2, 3), None

    def forward(self, x):
        self.pair = self.cell(x, self.pair)
        return self.pair[0]


@program("state keeps its graph", "`self.pair = tuple(x.detach() for x in self.pair)`")
def state_of_a_module():
    memory = Memory()
    for _ in range(9):
        memory(torch.zeros(4, 2)).sum()
    return ask([*memory.pair], depth=30)


@program("state keeps its graph",
         "`weights = {k: x.detach() for k, x in weights.items()}` between the iterations (and "
         ".requires_grad_() where it is trained)")
def weights_of_a_function():
    weights = {"w": torch.ones(3, requires_grad=True), "b": torch.ones(3, requires_grad=True)}
    for _ in range(9):
        loss = (weights["w"] * 2 + weights["b"]).sum()
        grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {k: w - 0.1 * g for (k, w), g in zip(weights.items(), grads)}
    return ask([*grads, *weights.values()], depth=30)


@program("state keeps its graph", "`params = [x.detach() for x in params]`")
def parameters_of_a_function():
    params = [torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)]
    for _ in range(9):
        grads = torch.autograd.grad((params[0] * params[1]).sum(), params, create_graph=True)
        params = [p - 0.1 * g for p, g in zip(params, grads)]
    return ask([*grads, *params], depth=30)


@program("graph of kept outputs", "detach() before you keep it")
def outputs_of_an_epoch():
    start = lambda: [torch.ones(1)]  # noqa: E731
    w, outs = torch.ones(3, requires_grad=True), start()
    for _ in range(2):
        outs = outs[:0] or start()
        for _ in range(9):
            outs.append(w * 2)
    return ask(outs[1:], depth=3)


@program("graph of kept outputs", "detach() before you keep it")
def outputs_of_an_lstm():
    lstm, state, outs = nn.LSTM(2, 3), None, []
    for _ in range(9):
        out, state = lstm(torch.zeros(4, 1, 2), state)
        outs.append(out)
        state = tuple(x.detach() for x in state)
    return ask(list(outs), depth=3)


@pytest.mark.parametrize("function, rule, words", program)
def test_state_of_a_network(function, rule, words):
    check_advice(function, rule, words)
