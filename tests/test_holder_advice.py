# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Each rule for holders (graph/holding.c) on two programs, and on one that only
looks like them.  The programs are written as people write them; none of the
rules was made from one of these.
"""

import collections
import contextlib
import dataclasses
import functools
import gc
import sys
import threading
import traceback
import types

import pytest

from test_holders import ask, watched  # noqa: F401

torch = pytest.importorskip("torch")
nn = torch.nn

GLOBAL = types.SimpleNamespace()


class Programs(list):
    """Each is said to be told by this rule, in these words."""

    def __call__(self, rule, *words):
        def add(function):
            self.append(pytest.param(function, rule, words, id=function.__name__))
            return function
        return add


program = Programs()


def check_advice(function, rule, words):
    (found,) = function()
    told = f"{found.rule}: {found.advice} | {found.path}"
    assert found.rule == rule, told
    for word in words:
        assert word in found.advice, told


# ---- gradients


@program("gradient not cleared", "zero_grad")
def gradients_of_a_bag(category="gradient"):
    bag = [torch.zeros(3) for _ in range(4)]
    return ask(list(bag), category=category)


@program("gradient not cleared", "zero_grad")
def gradients_kept_by_an_attribute():
    weight = nn.Parameter(torch.zeros(3))
    weight.main_grad = torch.zeros(3)
    return ask([weight.main_grad], category="gradient")


@program("container grows", "clear copies", "(numbers, or a summary of each)")
def copies_of_gradients():
    copies = []
    for _ in range(4):
        copies.append(torch.zeros(3))
    return ask(list(copies), category="other")


# ---- one that gets larger


@program("tensor gets longer", "give rows a bound", "`rows[-N:]`")
def rows_in_one_tensor():
    rows = torch.zeros(0, 4)
    for _ in range(4):
        rows = torch.cat([rows, torch.zeros(2, 4)])
    return ask([rows], category="one that gets larger")


@program("tensor gets longer", "give embeddings a bound", "detach() what is added")
def embeddings_of_all_steps():
    weight = torch.ones(4, requires_grad=True)
    GLOBAL.embeddings = torch.zeros(0, 4)
    for _ in range(4):
        GLOBAL.embeddings = torch.cat([GLOBAL.embeddings, torch.zeros(2, 4) * weight])
    return ask([GLOBAL.embeddings], category="one that gets larger", depth=9)


@program("container grows", "clear parts")
def last_part_is_the_largest():
    parts = [torch.zeros(4 << i) for i in range(4)]
    return ask(list(parts), category="one that gets larger")


# ---- exceptions


def explode(depth):
    payload = torch.zeros(8)
    if depth:
        return explode(depth - 1)
    raise ArithmeticError(payload.numel())


def payloads(error):
    found, tb = [], error.__traceback__
    while tb is not None:
        frame, tb = tb.tb_frame, tb.tb_next
        if frame.f_code.co_name == "explode":
            found.append(frame.f_locals["payload"])
    return found


class Retry:
    def __init__(self):
        self.failures = {}

    def __call__(self, job, number):
        try:
            job(2)
        except ArithmeticError as error:
            self.failures[number] = error


@program("kept exception", "with_traceback(None) in failures")
def errors_by_number():
    retry = Retry()
    for number in range(5):
        retry(explode, number)
    return ask([each for error in retry.failures.values() for each in payloads(error)])


@program("kept exception", "with_traceback(None)")
def exception_info_of_the_last():
    try:
        explode(0)
    except ArithmeticError as error:
        GLOBAL.problem = sys.exc_info()[1], error.__context__
    return ask(payloads(GLOBAL.problem[0]))


@program("container grows", "clear failures")
def messages_of_errors():
    failures = []
    for _ in range(5):
        try:
            explode(1)
        except ArithmeticError as error:
            failures.append((traceback.format_exc(), torch.zeros(len(error.args))))
    return ask([each for _, each in failures])


# ---- hooks


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def watch(self):
        seen = []
        self.layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs))

    def forward(self, x):
        self.watch()
        return self.layer(x)


@program("hooks pile up", "handle.remove()")
def watch_in_forward():
    probe = Probe()
    for _ in range(4):
        probe(torch.zeros(2))
    return ask([each for hook in probe.layer._forward_pre_hooks.values()
                for inputs in hook.__closure__[0].cell_contents for each in inputs])


@program("hooks pile up", "handle.remove()")
def hooks_of_a_tensor():
    weight = torch.zeros(3, requires_grad=True)
    for _ in range(5):
        weight.register_hook(functools.partial(torch.add, torch.zeros(9)))
    return ask([hook.args[0] for hook in weight._backward_hooks.values()])


@program("container grows", "clear seen")
def one_hook_that_fills_a_list():
    layer, seen = nn.Linear(2, 2), []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output.detach()))
    for _ in range(6):
        layer(torch.zeros(2))
    return ask(list(seen))


# ---- lru_cache


class Positions(nn.Module):
    @functools.lru_cache(maxsize=64)
    def table(self, length):
        return torch.zeros(length, 2)


@program("lru_cache on a method", "Positions.table")
def cached_tables_of_a_module():
    for length in range(1, 6):
        Positions().table(length)
    return ask([Positions().table(length) for length in range(1, 6)][:0]
               + cached_values(Positions.table))


@dataclasses.dataclass(eq=False)
class Sample:
    data: object

    @functools.cache
    def normal(self):
        return self.data + 1


@program("lru_cache on a method", "every self")
def cached_method_of_a_dataclass():
    for _ in range(4):
        Sample(torch.zeros(5)).normal()
    return ask(cached_values(Sample.normal))


class Rotary(nn.Module):
    @functools.cache
    def table(self, length, *, offset=0):
        return torch.zeros(length, 2)


@program("lru_cache", "give the cache of Rotary.table a maxsize: `functools.lru_cache(maxsize=N)`")
def cached_tables_of_few_modules():
    layers = [Rotary(), Rotary()]
    for length in range(1, 8):
        for layer in layers:
            layer.table(length, offset=length)
    return ask(cached_values(Rotary.table))


@functools.lru_cache(maxsize=100)
def mask(size):
    return torch.zeros(size)


def cached_values(function):
    found = [each for each in gc.get_referents(function) if isinstance(each, torch.Tensor)]
    for table in gc.get_referents(function):
        if type(table) is dict:
            found += [each for each in table.values() if isinstance(each, torch.Tensor)]
    return found


@program("lru_cache", "mask.cache_clear()")
def cached_function():
    for size in range(1, 8):
        mask(size)
    return ask(cached_values(mask))


@program("lru_cache", "maxsize")
def cached_function_in_a_function():
    @functools.cache
    def inner(size):
        return torch.zeros(size)

    for size in range(1, 8):
        inner(size)
    return ask(cached_values(inner))


class HandMade:
    def __init__(self, function):
        self.function, self.results = function, {}

    def __call__(self, size):
        if size not in self.results:
            self.results[size] = self.function(size)
        return self.results[size]


@program("memo without a bound", "give results a bound")
def cache_made_by_hand():
    cached = HandMade(torch.zeros)
    for size in range(1, 8):
        cached(size)
    return ask(list(cached.results.values()))


# ---- optimizers


def stepped(parameters):
    optimizer = torch.optim.RMSprop(parameters)
    for each in parameters:
        each.grad = torch.ones_like(each)
    optimizer.step()
    return optimizer


def states(optimizers):
    return [state["square_avg"] for each in optimizers for state in each.state.values()]


@program("optimizer kept", "old optimizers in history")
def optimizers_by_epoch():
    history = {}
    for epoch in range(4):
        history[epoch] = stepped([nn.Parameter(torch.zeros(3))])
    return ask(states(history.values()), category="optimizer state")


class Phases:
    def __init__(self):
        self.done = collections.deque()

    def run(self):
        for _ in range(4):
            self.done.append(("phase", stepped([nn.Parameter(torch.zeros(3))])))


@program("optimizer kept", "old optimizers in done")
def optimizers_in_pairs():
    phases = Phases()
    phases.run()
    return ask(states(each for _, each in phases.done), category="optimizer state")


@program("container grows", "keep less in optimizer, whose state grows")
def one_optimizer_of_many_parameters():
    optimizer = stepped([nn.Parameter(torch.zeros(3)) for _ in range(6)])
    return ask(states([optimizer]), category="optimizer state")


# ---- checkpoints


@program("checkpoint kept", "`del loaded`")
def whole_checkpoint():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    loaded = {"epoch": 3, "net": {name: each.clone() for name, each in
                                  model.state_dict().items() if each.dim()}}
    model.load_state_dict(loaded["net"], strict=False)
    return ask(list(loaded["net"].values()))


@program("checkpoint kept", "`del best_weights`")
def best_weights_so_far():
    net = nn.Linear(2, 2)
    best_weights = {name: each.clone() for name, each in net.state_dict().items()}
    return ask(list(best_weights.values()))


@program("container grows", "keep less in net, whose _parameters grows")
def the_weights_of_the_model():
    net = nn.Linear(2, 2)
    return ask(list(net._parameters.values()))


# ---- graphs


class Average:
    def __init__(self):
        self.value, self.count = 0.0, 0

    def update(self, value):
        self.value = self.value + value
        self.count += 1


@program("sum keeps its graph", "`self.value += value.item()`")
def running_average():
    average, weight = Average(), nn.Parameter(torch.ones(()))
    for _ in range(20):
        average.update(weight * 2)
    return ask([average.value], depth=40)


@program("sum keeps its graph", ".item()`", "epoch_loss keeps the graph")
def sum_over_an_epoch():
    weight, epoch_loss = nn.Parameter(torch.ones(())), 0
    for _ in range(9):
        loss = weight * 3
        epoch_loss = epoch_loss + loss
    return ask([epoch_loss], depth=18)


@program("state keeps its graph", "`state = state.detach()`")
def state_of_a_recurrence():
    cell, state = nn.RNNCell(2, 3), torch.zeros(4, 3)
    for _ in range(9):
        state = cell(torch.zeros(4, 2), state)
    return ask([state], depth=30)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("slots", torch.zeros(4, 3))

    def write(self, x):
        self.slots = self.slots * 0.9 + x


@program("state keeps its graph", "`self.slots = self.slots.detach()`")
def buffer_of_a_module():
    memory, weight = Memory(), nn.Parameter(torch.ones(3))
    for _ in range(9):
        memory.write(weight)
    return ask([memory.slots], depth=18)


@program("sum keeps its graph", "`totals['loss'] += (...).item()`")
def sums_by_name():
    weight, totals = nn.Parameter(torch.ones(())), collections.Counter()
    for _ in range(9):
        totals["loss"] += weight * 3
    return ask([totals["loss"]], depth=18)


@program("kept", "set running = None")
def average_of_a_buffer():
    running = torch.zeros(4)
    for _ in range(9):
        running = running * 0.9 + 0.1
    return ask([running], depth=0)


@program("graph of a kept scalar", "append `batch_loss.item()` instead")
def losses_for_a_plot():
    weight, curve = nn.Parameter(torch.ones(())), []
    for _ in range(9):
        batch_loss = weight * 2
        curve.append(batch_loss)
    return ask(list(curve), depth=1)


@program("graph of a kept scalar", "keep `", ".item()` instead")
def metrics_by_name():
    weight, metrics = nn.Parameter(torch.ones(())), collections.defaultdict(dict)
    for step in range(9):
        metrics["train"][step] = weight * 2
    return ask(list(metrics["train"].values()), depth=1)


@program("kept scalars", "append a number instead: `curve.append((...).item())`")
def numbers_for_a_plot():
    curve = []
    for _ in range(9):
        curve.append(torch.zeros(()))
    return ask(list(curve))


@program("graph of kept outputs", "detach()", "in predictions")
def predictions_of_an_evaluation():
    net, predictions = nn.Linear(2, 2), []
    for _ in range(5):
        predictions.append(net(torch.zeros(3, 2)))
    return ask(list(predictions), depth=2)


@program("graph of kept outputs", "torch.no_grad()")
def outputs_of_a_thread():
    net, results, ready = nn.Linear(2, 2), {}, threading.Event()

    def serve():
        for number in range(5):
            results[number] = net(torch.zeros(3, 2))
        ready.set()

    threading.Thread(target=serve).start()
    ready.wait(60)
    return ask(list(results.values()), depth=2)


@program("container grows", "clear predictions")
def predictions_without_a_graph():
    net, predictions = nn.Linear(2, 2), []
    with torch.no_grad():
        for _ in range(5):
            predictions.append(net(torch.zeros(3, 2)))
    return ask(list(predictions))


# ---- global caches

FEATURES = {}


class Tokenizer:
    seen = collections.OrderedDict()


@program("global cache", "give FEATURES a bound")
def features_of_files():
    FEATURES.clear()
    for name in "abcdef":
        FEATURES[f"{name}.png"] = torch.zeros(5)
    return ask(list(FEATURES.values()))


@program("global cache", "give seen a bound")
def cache_of_a_class():
    Tokenizer.seen.clear()
    for length in range(1, 7):
        Tokenizer.seen[length] = torch.zeros(length)
    return ask(list(Tokenizer.seen.values()))


@program("container grows", "clear local_cache")
def cache_of_a_function():
    local_cache = {}
    for length in range(1, 7):
        local_cache[length] = torch.zeros(length)
    return ask(list(local_cache.values()))


# ---- chains, containers, and the rest


@dataclasses.dataclass
class State:
    hidden: object
    before: object = None


@program("chain", "behind state", "30 links")
def states_of_a_recurrence():
    state = None
    for _ in range(30):
        state = State(torch.zeros(4), state)
    return ask(list(hidden_of(state)))


def hidden_of(state):
    while state is not None:
        yield state.hidden
        state = state.before


@program("chain", "behind undo", "links")
def undo_by_closures():
    def remember(tensor, before):
        return lambda: (tensor, before)

    undo = None
    for _ in range(30):
        undo = remember(torch.zeros(4), undo)
    return ask(list(remembered(undo)))


def remembered(undo):
    while undo is not None:
        tensor, undo = undo()
        yield tensor


@program("container grows", "clear blocks")
def blocks_of_a_model():
    blocks = [[torch.zeros(4), [torch.zeros(4)]] for _ in range(30)]
    return ask([each[0] for each in blocks])


@program("container grows", "clear buffer")
def replay_buffer():
    buffer = collections.deque(maxlen=100)
    for _ in range(30):
        buffer.append((torch.zeros(4), 1.0, torch.zeros(4)))
    return ask([each for state, _, following in buffer for each in (state, following)])


@program("kept", "set workspace = None")
def one_large_buffer():
    with contextlib.ExitStack():
        workspace = torch.zeros(1000)
        return ask([workspace])


@pytest.mark.parametrize("function, rule, words", program)
def test_advice(function, rule, words):
    check_advice(function, rule, words)
    for cached in mask, Positions.table, Sample.normal:
        cached.cache_clear()
