# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Growth in a program: what is told, to whom, and that nothing of the program runs."""

import json

import leak_file
import pytest
from process import NODES, run_ok

LOOP = NODES + """
def train(keep, steps=20, optimizer=None):
    model = torch.nn.Linear(512, 512)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.randn(256, 512)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        keep(torch.zeros(1 << 18))
"""


def test_growth_says_who_holds_it(tmp_path):
    run_ok(LOOP + """
assert cumem.growth() == []
with cumem.observe_tensor_cycles(print):
    kept = []
    train(kept.append)
    row, = cumem.growth()
assert row["verdict"] == "leak" and row["device"] == "cpu", row
assert abs(row["bytes_per_iteration"] - (1 << 20)) < 1000 and row["count"] >= 18
assert row["since_iteration"] <= 3 and row["confidence"] > 0.5
assert any(step["edge"].endswith("kept") for step in row["holder"]), row["holder"]
assert row["frames"][0]["name"] == "train" and "kept" in row["advice"]
assert row["series"][-1][2] > row["series"][0][2]
""", cwd=tmp_path)


def test_it_is_told_within_ten_iterations_of_its_start(tmp_path):
    run_ok(LOOP + """
import logging
told, kept = [], []
class Listen(logging.Handler):
    def emit(self, record):
        if "LEAK" in record.getMessage():
            told.append(len(kept))
logging.getLogger("cumem").addHandler(Listen())
cumem.warn_tensor_cycles(min_bytes=0)
def keep(tensor):
    kept.append(tensor)
    cumem.flush(30)  # a thread of its own writes, and an iteration takes 1 ms
train(keep, 25)
assert told and told[0] <= 11, told  # what keep() is given is made after the step
""", cwd=tmp_path)


@pytest.mark.parametrize("emptied, told", [
    (False, "cumem: stopped growing: <string>:"), (True, "cumem: given back: <string>:")])
def test_who_was_told_hears_that_it_stopped(emptied, told, tmp_path):
    """A ring by hand, and a cache that is emptied, by code that nobody can read."""
    done = run_ok(LOOP + f"""
kept = []
def keep(tensor):
    kept.append(tensor)
    exec("if len(kept) > 30: del kept[:{31 if emptied else 1}]")
cumem.warn_tensor_cycles()
train(keep, {50 if emptied else 150})
""", cwd=tmp_path)
    lines = done.err.splitlines()
    leak, = [i for i, line in enumerate(lines) if line.startswith("#1 LEAK")]
    stopped, = [i for i, line in enumerate(lines) if line.startswith(told)]
    assert leak < stopped and lines[stopped].endswith("(told as a leak before)"), done.err


def test_what_is_cleared_at_the_end_is_not_told(tmp_path):
    """A variable has the last one of it yet: that is not what grew."""
    done = run_ok(LOOP + """
class Outputs:
    def __init__(self):
        self.rows = []
    def reset(self):
        self.rows = []
outputs, last = Outputs(), None
def keep(tensor):
    global last
    last = tensor
    outputs.rows.append(tensor.view(-1))
cumem.warn_tensor_cycles()
train(keep, 30)
outputs.reset()
""", cwd=tmp_path)
    assert done.err == ""


@pytest.mark.parametrize("name, told", [("keep_last", False), ("mean_of_last", True)])
def test_a_helper_of_another_module_is_read(name, told, tmp_path):
    (tmp_path / "tools.py").write_text("""
def keep_last(items, most):
    del items[:-most]
def mean_of_last(items, most):
    return sum(item.mean() for item in items[-most:]) / most
""")
    done = run_ok(LOOP + f"""
import tools
kept = []
def keep(tensor):
    kept.append(tensor)
    tools.{name}(kept, 30)
cumem.warn_tensor_cycles()
train(keep, 50)
""", cwd=tmp_path)
    assert ("#1 LEAK" in done.err) == told, done.err


def test_what_a_line_empties_is_told_where_that_never_comes(tmp_path):
    """After 1,000 iterations, and not before; at once then, not when their number has doubled."""
    run_ok(NODES + """
import logging
told, outputs = [], []
class Listen(logging.Handler):
    def emit(self, record):
        if "LEAK" in record.getMessage():
            told.append(len(outputs))
logging.getLogger("cumem").addHandler(Listen())
def on_epoch_end():
    outputs.clear()
cumem.warn_tensor_cycles()
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1020):
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    outputs.append(torch.zeros(4096))
    if len(outputs) > 980:
        cumem.flush(30)  # a thread of its own writes, and an iteration takes 1 ms
assert told and 990 <= told[0] <= 1010, told
""", cwd=tmp_path)


def test_what_several_lines_allocate_for_one_list_is_one_fault(tmp_path):
    """Told by the name of what the list has, not of what that was made from."""
    done = run_ok(NODES + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(512, 512), torch.nn.Linear(512, 512)
    def forward(self, batch):
        hidden = torch.tanh(self.inner(batch))
        return self.outer(hidden)
def main():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        batch = torch.randn(512, 512)
        output = net(batch)
        loss = (output * output).mean() + (output - batch).abs().mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
cumem.warn_tensor_cycles()
main()
""", cwd=tmp_path)
    assert "#1 LEAK +4.0 MiB per iteration" in done.err and "#2" not in done.err, done.err
    assert done.err.count("#1 LEAK") <= 2, done.err  # new, and doubled
    assert "`losses.append(loss.item())`" in done.err and done.err.count("   also  ") >= 2


def test_optimizers_that_others_call(tmp_path):
    """As Lightning, accelerate and a gradient scaler do: wrapped, with a closure, at times not."""
    run_ok(NODES + """
class Wrapped:
    def __init__(self, optimizer):
        self.optimizer = optimizer
    def step(self, closure=None):
        return self.optimizer.step(closure) if closure else self.optimizer.step()
def iterations():
    return cumem.find_cycles().report["iteration"]
model = torch.nn.Linear(64, 64)
optimizer = Wrapped(torch.optim.AdamW(model.parameters()))
def closure():
    optimizer.optimizer.zero_grad()
    loss = model(torch.ones(8, 64)).sum()
    loss.backward()
    return loss
cumem.warn_tensor_cycles(min_bytes=0)
for _ in range(5):
    optimizer.step(closure)
assert iterations() == 5, iterations()
for step in range(8):  # accumulated over four
    closure()
    if step % 4 == 3:
        optimizer.step()
assert iterations() == 7, iterations()
for found_inf in (False, True, True, False):  # a scaler leaves out a step
    closure()
    if not found_inf:
        optimizer.step()
assert iterations() == 9, iterations()
""", cwd=tmp_path)


def test_state_of_an_optimizer_has_its_names(tmp_path):
    run_ok(NODES + """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(256, 256)
model = Model()
optimizer = torch.optim.Adam(model.parameters())
with cumem.observe_tensor_cycles(print):
    for i in range(30):  # a layer more for each task
        more = torch.nn.Linear(256, 256)
        setattr(model, f"task{i}", more)
        optimizer.add_param_group({"params": list(more.parameters())})
        more(model.first(torch.ones(4, 256))).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    rows = cumem.growth()
names = {(row["category"], name) for row in rows for name in row["names"]}
assert ("optimizer state", "Adam.task3.weight.exp_avg") in names, names
assert ("optimizer state", "Adam.task3.weight.exp_avg_sq") in names, names
assert ("parameter", "task3.weight") in names, names
""", cwd=tmp_path)


def test_a_model_behind_freeze_keeps_its_names(tmp_path):
    run_ok(NODES + """
from cumem import _growth
model = torch.nn.Linear(2, 2)
gc.freeze()
assert [name for parameter, name in _growth._parameters() if parameter is model.weight] \\
    == ["weight"]
""", cwd=tmp_path)


def test_a_loop_that_keeps_nothing_is_left_alone(tmp_path):
    run_ok(LOOP + """
with cumem.observe_tensor_cycles(print):
    train(lambda tensor: None, 40)
    assert cumem.growth() == [], cumem.growth()
""", cwd=tmp_path)


@pytest.mark.parametrize("size, name, wanted", [
    (64, "table", "growing"), (10**6, "table", "leak"), (None, "table", "leak"),
    (64, "Net.table", "leak"), (64, "main.<locals>.table", "growing"),
])  # fmt: skip
def test_a_cache_with_a_size_may_fill(size, name, wanted, tmp_path):
    """Unless the size is beyond all bounds, or each result keeps its `self` besides."""
    run_ok(LOOP + f"size, name, wanted = {size!r}, {name!r}, {wanted!r}" + """
import functools
def table(number):
    return torch.ones(1 << 18)
table.__qualname__ = name
table = functools.lru_cache(maxsize=size)(table)
numbers = iter(range(1000))
with cumem.observe_tensor_cycles(print):
    train(lambda _: table(next(numbers)))
    told = [row["verdict"] for row in cumem.growth() if row["verdict"] != "settled"]
assert told == [wanted], told
""", cwd=tmp_path)


@pytest.mark.parametrize("size, wanted", [("64", "growing"), ("1e6", "growing"), ("float('inf')", "leak")])
def test_a_cache_of_cachetools_may_fill(size, wanted, tmp_path):
    run_ok(LOOP + f"size, wanted = {size}, {wanted!r}" + """
class Cache:
    def __init__(self, maxsize):
        self.__maxsize, self.__data = maxsize, {}
    def put(self, tensor):
        self.__data[len(self.__data)] = tensor
class Features(Cache):
    pass
cache = Features(size)
with cumem.observe_tensor_cycles(print):
    train(cache.put)
    told = [row["verdict"] for row in cumem.growth() if row["verdict"] != "settled"]
assert told == [wanted], told
""", cwd=tmp_path)


def test_who_held_it_is_told_when_main_has_returned(tmp_path):
    """The trainer refers to itself, and so dies with main() as a cycle; that is not why it grew."""
    run_ok(LOOP + """
class Trainer:
    def __init__(self):
        self.on_end, self.seen = self.finish, []
    def finish(self):
        pass
def main():
    trainer = Trainer()
    train(lambda tensor: trainer.seen.append(tensor), 25)
cumem.warn_tensor_cycles(directory=".", min_bytes=0)
main()
""", cwd=tmp_path)
    (report,) = [json.loads(path.read_text()) for path in tmp_path.glob("leak-*.json")]
    (row,) = [row for row in report["growth"] if row["verdict"] == "leak"]
    assert "clear seen" in row["advice"], row
    assert any(step["edge"].endswith("seen") for step in row["holder"]), row["holder"]
    assert report["cycles"], "and the cycle is told as what it is"


@pytest.mark.parametrize("program, line", [
    ("""
import weakref
class Trainer:
    def close(self, tensor):
        pass
    def end(self):
        writer.finalize()
    def watch(self, module, tensor):
        weakref.finalize(module, self.close, tensor)
module, trainer = torch.nn.Linear(1, 1), Trainer()
def main():
    train(lambda tensor: trainer.watch(module, tensor))
""", "weakref.finalize(module, self.close, tensor)"),
    ("""
import contextvars
trace = contextvars.ContextVar("trace")
def begin():
    trace.set([])
def main():
    begin()
    train(lambda tensor: trace.get().append(tensor))
""", "trace.set([])"),
])
def test_what_a_function_has_handed_over_and_returned_from(program, line, tmp_path):
    """Neither weakref's registry nor a context says who put it there."""
    (tmp_path / "program.py").write_text(LOOP + program + """
with cumem.observe_tensor_cycles(print):
    main()
    row, = [row for row in cumem.growth() if row["verdict"] == "leak"]
assert [place["source"].strip() for place in row["made_at"]] == [""" + repr(line) + """], row
""")
    run_ok("import runpy; runpy.run_path('program.py', run_name='__main__')", cwd=tmp_path)


def test_items_of_a_list_that_is_gone_have_their_iteration(tmp_path):
    """The list has 25 items when main() returns; who asks then knows those of the look before."""
    run_ok(LOOP + """
def main():
    seen = []
    train(seen.append, 25)
cumem.warn_tensor_cycles(directory=".", min_bytes=0)
main()
""", cwd=tmp_path)
    (report,) = [json.loads(path.read_text()) for path in tmp_path.glob("leak-*.json")]
    (row,) = [row for row in report["growth"] if row["verdict"] == "leak"]
    (items,) = [step["annotation"].removeprefix("list of ") for step in row["holder"]
                if step["edge"].endswith("seen")]
    assert int(items) < 25 and int(items) <= row["holder_iteration"] <= int(items) + 2, row
    told = leak_file.run(*tmp_path.glob("leak-*.json"), "--format", "text", cwd=tmp_path)
    assert f"(list, {items} items at iteration {row['holder_iteration']})" in told


def test_nobody_is_looked_at_for_an_observer(tmp_path):
    run_ok(LOOP + """
def count():
    return cumem.status()["looks"]["growth"]["count"]
with cumem.observe_tensor_cycles(print):
    train([].append)
    assert count() == 0
with cumem.warn_tensor_cycles():
    train([].append)
    looks = cumem.status()["looks"]["growth"]
    assert looks["count"] > 0 and 0 < looks["longest"] <= looks["seconds"] < 60, looks
""", cwd=tmp_path)


def test_an_optimizer_that_answers_is_not_asked(tmp_path):
    run_ok(LOOP + """
calls = []
class Loud(torch.optim.SGD):
    @property
    def name(self):
        calls.append("name")
    def __getattr__(self, name):
        calls.append(name)
        raise AttributeError(name)
    def __eq__(self, other):
        calls.append("eq")
        return True
    __hash__ = object.__hash__
    def __repr__(self):
        calls.append("repr")
        return ""
model = torch.nn.Linear(512, 512)
optimizer = Loud(model.parameters(), lr=0.1)
def called():
    calls.clear()
    kept = []
    train(kept.append, optimizer=optimizer)
    return list(calls)
called()
before = called()  # torch asks for some
with cumem.warn_tensor_cycles():
    assert called() == before, (calls, before)
    cumem.growth()
    assert calls == before, calls
""", cwd=tmp_path)


def test_the_report_of_a_leak_is_written(tmp_path):
    run_ok(LOOP + """
import glob, json
with cumem.warn_tensor_cycles(directory="."):
    kept = []
    train(kept.append)
    cumem.flush()
    report = json.load(open(glob.glob("leak-*.json")[0]))
assert [row["verdict"] for row in report["growth"]] == ["leak"]
assert report["timeline"]["by"] == "optimizer"
""", cwd=tmp_path)


def test_two_optimizers_of_one_model(tmp_path):
    """Its gradients are counted once, and told once by name."""
    run_ok(LOOP + """
from cumem import _growth
with cumem.observe_tensor_cycles(print):
    model = torch.nn.Linear(512, 512)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(4)]
    for step in range(24):
        model(torch.randn(8, 512)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
        model.zero_grad()
        if step % 8 == 7:
            assert cumem.growth() == [], cumem.growth()
    model(torch.randn(8, 512)).sum().backward()
    trained = set()
    rows = [_growth._rows_of(optimizer, {}, trained) for optimizer in optimizers]
    assert [len(each) for each in rows] == [4, 0, 0, 0], rows
""", cwd=tmp_path)


def test_gradients_of_one_of_two_optimizers(tmp_path):
    """Only one is cleared before its forward pass; the iteration ends where the last one steps."""
    run_ok(LOOP + """
with cumem.observe_tensor_cycles(print):
    first, second = torch.nn.Linear(1024, 1024), torch.nn.Linear(1024, 512)
    of_first = torch.optim.SGD(first.parameters(), lr=0.1)
    of_second = torch.optim.SGD(second.parameters(), lr=0.1)
    for step in range(12):
        first.zero_grad()
        x = first(torch.randn(8, 1024))
        x.sum().backward()
        of_first.step()
        second.zero_grad()
        second(x.detach()).sum().backward()
        of_second.step()
    row, = cumem.growth()
assert row["verdict"] == "lingering" and row["bytes"] < 1024 * 1024 * 4, row
edge = row["holder"][1]["edge"]
calls = {".second": "zero_grad(set_to_none=True) on the optimizer of second",
         ".of_second": "of_second.zero_grad(set_to_none=True)"}
assert f"call {calls[edge]} right after" in row["advice"], row
""", cwd=tmp_path)


def test_lingering_of_a_second_phase(tmp_path):
    """It trains what the first one did, by another line: when that is known to be gradients, it
    has them for long."""
    run_ok(LOOP + """
with cumem.observe_tensor_cycles(print):
    model = torch.nn.Linear(1024, 512)
    first = torch.optim.Adam(model.parameters())
    for step in range(40):
        model(torch.randn(8, 1024)).sum().backward()
        first.step()
        first.zero_grad()
    second = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        loss = model(torch.randn(8, 1024)).sum()
        second.zero_grad()
        loss.backward()
        second.step()
    row, = [row for row in cumem.growth() if row["verdict"] == "lingering"]
assert row["since_iteration"] == 40 and row["series"][0][0] == 41, row
""", cwd=tmp_path)


def test_lingering_names_the_optimizer_as_its_line_does(tmp_path):
    run_ok(LOOP + """
class Trainer:
    def __init__(self):
        self.net = torch.nn.Linear(1024, 512)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
    def train(self):
        for _ in range(20):
            loss = self.net(torch.randn(8, 1024)).sum()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return cumem.growth()
with cumem.observe_tensor_cycles(print):
    row, = Trainer().train()
assert row["advice"].startswith("call self.opt.zero_grad(set_to_none=True) right after "
                                "self.opt.step(), "), row
""", cwd=tmp_path)


def test_parameters_that_nobody_trains(tmp_path):
    run_ok(LOOP + """
with cumem.observe_tensor_cycles(print):
    heads = torch.nn.ModuleList()
    train(lambda tensor: heads.append(torch.nn.Linear(512, 512)))
    row, = [row for row in cumem.growth() if row["verdict"] == "leak"]
assert row["category"] == "parameter" and "heads" in row["advice"], row
assert "19.weight" in row["names"] or "0.weight" in row["names"], row["names"]
""", cwd=tmp_path)


def test_state_that_keeps_the_graph_of_each_iteration(tmp_path):
    """The newest state is seen; the others are behind it."""
    run_ok(LOOP + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(512))
        self.state = torch.zeros(512, 512)
    def advance(self):
        self.state = torch.tanh(self.state * self.weight)
net = Net()
with cumem.observe_tensor_cycles(print):
    train(lambda tensor: net.advance())
    rows = [row for row in cumem.growth() if row["verdict"] == "leak"]
assert rows
for row in rows:
    assert row["category"] == "saved for backward", row
    assert "write `self.state = self.state.detach()`" in row["advice"], row
""", cwd=tmp_path)


@pytest.mark.parametrize("decorator, self_too, verdict", [
    ("functools.cache", False, "leak"), ("functools.lru_cache(maxsize=64)", False, "growing"),
    ("functools.lru_cache(maxsize=64)", True, "leak")])
def test_a_method_with_a_sized_cache_is_bounded_where_its_objects_are_few(
        decorator, self_too, verdict, tmp_path):
    done = run_ok(LOOP + f"""
import functools
class Rotary:
    @{decorator}
    def table(self, offset):
        return torch.zeros(1 << 18)
def main():
    rotary = Rotary()
    def keep(_):
        nonlocal rotary
        if {self_too}:
            rotary = Rotary()
        keep.calls += 1
        rotary.table(keep.calls)
    keep.calls = 0
    train(keep, 25)
    row, = [row for row in cumem.growth() if row["verdict"] != "settled"]
    assert row["verdict"] == {verdict!r}, row
    print(row["advice"])
with cumem.watch():
    main()
""", cwd=tmp_path)
    assert ("every self" if self_too else "maxsize") in done.out, done.out


def test_a_length_that_grows_and_stops_is_taken_back(tmp_path):
    """The layer's state keeps its size: it does not hold what grows."""
    done = run_ok(NODES + """
def main():
    net = torch.nn.LSTM(256, 32, batch_first=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    past = torch.ones(64, 16, 256)
    for i in range(100):
        if i < 30:
            past = torch.cat([past, torch.ones(64, 1, 256)], 1)
        output, state = net(past)
        output.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
cumem.warn_tensor_cycles(min_bytes=0)
main()
""", cwd=tmp_path)
    lines = done.err.splitlines()
    leaks = [i for i, line in enumerate(lines) if line.startswith("#1 LEAK")]
    assert leaks and "`past`" in done.err and "`state`" not in done.err, done.err
    stopped, = [i for i, line in enumerate(lines) if line.startswith("cumem: stopped growing: ")]
    assert stopped > leaks[-1], done.err
