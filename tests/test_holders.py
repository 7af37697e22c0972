# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Who holds objects that grow in number (pyext/holders/holders.h)."""

import collections
import functools
import gc
import random
import sys

import pytest

import cumem
from cumem import _core, _runtime
from test_object_safety import CALLS, HostileMeta, hostile_zoo

torch = pytest.importorskip("torch")


class Holder:
    def __init__(self, found):
        self.__dict__.update(found)
        self.path = cumem.Path(found["holder"])
        self.place = self.path.steps[self.at] if self.path.steps else None
        self.lines = [(line, name) for _, line, name, _ in self.made_at]


def ask(*groups, category=None, depth=0, retained=True, most=10**7):
    """Before: what is passed is a list that nothing else refers to."""
    found = _core.holders([*groups], [category] * len(groups), [depth] * len(groups), retained,
                          most)
    return [Holder(each) for each in found["holders"]]


@pytest.fixture(autouse=True, scope="module")
def watched():
    _runtime._prepare()
    _core.watch("cpu", True, False)
    yield
    _core.watch("auto", True, False)


def line_of(function, text):
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


LOSSES = []


def train(count):
    for _ in range(count):
        loss = torch.zeros(())
        LOSSES.append(loss)
    (found,) = ask(list(LOSSES), depth=count)
    return found


def test_list_of_a_module():
    LOSSES.clear()
    found = train(17)
    assert str(found.path).startswith(f"`{__name__}.LOSSES` (list, 17 items) > [16] > Tensor [] ")
    assert found.place == ("list of 17", ".LOSSES")
    assert (found.through, found.targets, found.unreached) == (17, 17, 0)
    assert found.lines == [(line_of(train, "LOSSES.append"), "train")]
    assert found.advice == "append `loss.item()` instead: `LOSSES.append(loss.item())`"
    LOSSES.clear()


class Trainer:
    best = {}

    def __init__(self):
        self.outputs = []

    def step(self, number):
        output = torch.zeros(256)
        self.outputs.append(output)
        Trainer.best[number] = torch.zeros(64)


def test_list_of_an_object():
    trainer = Trainer()
    for number in range(9):
        trainer.step(number)
    outputs, best = ask(list(trainer.outputs), list(Trainer.best.values()))
    assert outputs.place == ("list of 9", ".outputs")
    assert ": local `trainer` (" in str(outputs.path)
    assert outputs.lines == [(line_of(Trainer, "outputs.append"), "Trainer.step")]
    assert (outputs.retained, outputs.shared) == (9 * 1024, 0)
    assert best.place == ("dict of 9", ".best")
    assert best.lines == [(line_of(Trainer, "Trainer.best[number]"), "Trainer.step")]
    assert best.retained == 9 * 256 and best.rule == "global cache"
    Trainer.best.clear()


def test_records_in_a_list_are_one_holder():
    kept = [{"loss": [torch.zeros(4)], "n": i} for i in range(12)]
    (found,) = ask([record["loss"][0] for record in kept])
    assert found.place == ("list of 12", "local kept") and found.through == 12
    assert found.retained == 12 * 16


def test_one_of_many_may_be_held_by_a_variable_alone():
    kept = collections.deque(torch.zeros(4) for _ in range(10))
    newest = torch.zeros(4)
    (found,) = ask([*kept, newest])
    assert found.place == ("collections.deque of 10", "local kept")
    assert (found.through, found.targets) == (10, 11)


def test_the_newest_may_be_two():
    """A layer's weight and bias, where three others were put aside."""
    net = torch.nn.Module()
    net.aside = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
    net.head = torch.nn.Linear(4, 4)
    (found,) = ask(list(net.parameters()))
    assert "aside" in str(found.path.steps[found.at - 1]), found.path
    assert (found.through, found.targets) == (6, 8)


def test_the_newest_may_be_asked_for_first():
    """Its attribute's module is as near to it as the list is to the others."""
    net = torch.nn.Module()
    net.aside = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(8))
    net.head = torch.nn.Linear(4, 4)
    for made in lambda first, rest: [first, *rest], lambda first, rest: [*rest, first]:
        (found,) = ask(made(net.head.weight, (layer.weight for layer in net.aside)))
        assert "aside" in str(found.path.steps[found.at - 1]), found.path
        assert (found.through, found.targets) == (8, 9)


def test_the_newest_may_be_nearer_to_its_object():
    log = Node()
    log.rows = [{"x": torch.zeros(4)} for _ in range(8)]
    log.last = torch.zeros(4)
    (found,) = ask([log.last, *(row["x"] for row in log.rows)])
    assert found.place == ("list of 8", ".rows")
    assert (found.through, found.targets) == (8, 9)


class Node:
    pass


def links(node):
    while node is not None:
        yield node.value
        node = node.next


def test_chain_is_told_by_its_head():
    head = None
    for _ in range(60):
        node = Node()
        node.value, node.next, head = torch.zeros(4), head, node
    del node
    (found,) = ask(list(links(head)))
    assert found.place == ("test_holders.Node", "local head")
    assert found.chain == 60 and found.through == 60
    assert found.retained == 60 * 16
    assert "60 links" in found.advice


def test_a_chain_of_a_million_links():
    head, values = None, []
    for number in range(1_000_000):
        node = Node()
        node.next, head = head, node
        if number % 100_000 == 0:
            node.value = torch.zeros(4)
    values = [head.value for head in long_chain(head) if hasattr(head, "value")]
    (found,) = ask(list(values), retained=False)
    assert found.place == ("list of 10", "local values")
    (found,) = ask([values.pop() for _ in range(10)])
    try:
        assert found.place == ("test_holders.Node", "local head")
        assert found.chain > 900_000 and found.through == 10
        assert found.retained == 10 * 16
        assert len(found.path.steps) < 60
    finally:
        while head is not None:  # not by recursion
            head.next, head = None, head.next


def long_chain(head):
    while head is not None:
        yield head
        head = head.next


def test_dicts_of_alike_objects_are_a_chain():
    """Of each its __dict__ is there, which the walk passes."""
    head = None
    for _ in range(60):
        node = Node()
        vars(node).update(value=torch.zeros(4), next=head)
        head = node
    del node
    (found,) = ask(list(links(head)))
    assert found.chain == 60 and "60 links" in found.advice


def test_modules_in_each_other_are_no_chain():
    """Each in the dict of the one that has it, of which no two are of one class."""
    top = node = type("M0", (), {})()
    for depth in range(1, 12):
        child = type(f"M{depth}", (), {})()
        node._modules = {"child": child, "other": None}
        node = child
    node._modules = {number: torch.zeros(4) for number in range(9)}
    del node, child
    (found,) = ask(list(leaves(top)))
    assert found.chain == 0 and found.place == ("dict of 9", "._modules")


def leaves(top):
    while "child" in top._modules:
        top = top._modules["child"]
    return top._modules.values()


def test_three_lists_in_each_other_are_no_chain():
    kept = [[[torch.zeros(4) for _ in range(5)]]]
    (found,) = ask(list(kept[0][0]))
    assert found.chain == 0 and found.place == ("list of 5", "[0]")


def test_what_two_hold_goes_with_neither():
    first = [torch.zeros(4) for _ in range(8)]
    second = [*first[:6]]
    (found,) = ask(list(first))
    assert found.place == ("list of 8", "local first")
    assert (found.retained, found.shared) == (2 * 16, 6 * 16)
    del second[3:]
    (found,) = ask(list(first))
    assert (found.retained, found.shared) == (5 * 16, 3 * 16)


def test_a_storage_of_several_tensors_counts_once():
    base = torch.zeros(1024)
    views = [base.data for _ in range(5)]  # a view proper keeps its base, too
    del base
    (found,) = ask(list(views))
    assert found.place == ("list of 5", "local views")
    assert (found.retained, found.shared) == (4096, 0)


def test_a_storage_that_is_used_elsewhere_stays():
    base = torch.zeros(1024)
    views = [base[i:] for i in range(5)]
    (found,) = ask(list(views))
    assert (found.retained, found.shared) == (0, 4096)
    assert base.numel() == 1024


def test_what_a_long_way_back_leads_to_goes_with_neither():
    boxes = [[torch.zeros(4)] for _ in range(8)]
    back = [[*boxes]]
    for _ in range(40):
        back.append([back[-1]])
    last = back[-1]
    # From its end: each is looked into before what leads to it.
    line = [*reversed(boxes + back)]
    group = [box[0] for box in boxes]
    del boxes, back
    (found,) = ask([group.pop() for _ in range(len(group))])
    assert found.place == ("list of 49", "local line")
    assert (found.retained, found.shared) == (0, 8 * 16)
    del last
    group = [box[0] for box in line[-8:]]
    (found,) = ask([group.pop() for _ in range(len(group))])
    assert (found.retained, found.shared) == (8 * 16, 0)


def resolve(root, found):
    """The object at which they pile up, by the labels of the way to it."""
    for _, edge in found.path.steps[2:found.at + 1]:
        root = root[int(edge[1:-1])]
    return root


def reached(start, without=None):
    """Ids of what is reached, and the tensors among it."""
    seen, tensors, queue = {id(start)}, set(), [start]
    while queue:
        each = queue.pop()
        if each is without:
            continue
        if isinstance(each, torch.Tensor):
            tensors.add(id(each))
            continue
        for item in each:
            if id(item) not in seen:
                seen.add(id(item))
                queue.append(item)
    return tensors


@pytest.mark.parametrize("seed", range(25))
def test_what_goes_is_what_is_not_reached_without_it(seed):
    dice = random.Random(seed)

    def build():
        boxes = [[] for _ in range(40)]
        for i, box in enumerate(boxes[1:], 1):
            boxes[dice.randrange(i)].append(box)
        for _ in range(dice.randrange(12)):
            dice.choice(boxes).append(dice.choice(boxes))
        chosen = dice.choice(boxes)
        for _ in range(8):
            chosen.append(torch.zeros(16))
        for _ in range(dice.randrange(3)):
            dice.choice(boxes).append(chosen[-1])
        return boxes[0], chosen

    root, chosen = build()
    group = [each for each in chosen if isinstance(each, torch.Tensor)]
    del chosen
    (found,) = ask([group.pop() for _ in range(len(group))])
    place = resolve(root, found)
    expected = len(reached(root) - reached(root, place)) * 64
    found_at = found.place
    del place
    assert found.through >= 7, found_at
    assert found.retained == expected, (found_at, str(found.path))
    assert found.retained + found.shared == 8 * 64


def test_optimizers_in_a_list():
    kept = []
    for _ in range(3):
        layer = torch.nn.Linear(2, 2)
        optimizer = torch.optim.Adam(layer.parameters())
        layer(torch.zeros(2)).sum().backward()
        optimizer.step()
        kept.append(optimizer)
    (found,) = ask([state["exp_avg"] for each in kept for state in each.state.values()],
                   category="optimizer state")
    assert found.place == ("list of 3", "local kept")
    assert found.rule == "optimizer kept" and found.through == 6
    assert found.lines == [(line_of(test_optimizers_in_a_list, "kept.append"),
                            "test_optimizers_in_a_list")]


def test_checkpoint():
    def load():
        checkpoint = {"model": torch.nn.Linear(2, 2).state_dict(), "epoch": 3}
        return ask(list(checkpoint["model"].values()))

    (found,) = load()
    assert found.rule == "checkpoint kept" and found.advice.startswith("`del checkpoint`")


def registré(layer, seen):
    def hook(*_):
        return seen

    layer.register_forward_hook(hook)
    return hook


def test_names_of_hooks_stay_as_they_are():
    """The UTF-8 of a str that is not ASCII would be kept with it."""
    layer = torch.nn.Linear(2, 2)
    hooks = [registré(layer, torch.zeros(3)) for _ in range(4)]
    names = [hook.__qualname__ for hook in hooks]
    before = [sys.getsizeof(name) for name in names]
    del hooks
    (found,) = ask([hook.__closure__[0].cell_contents
                    for hook in layer._forward_hooks.values()])
    assert found.rule == "hooks pile up"
    assert [sys.getsizeof(name) for name in names] == before


def test_hooks():
    layer = torch.nn.Linear(2, 2)

    def step():
        seen = torch.zeros(4)
        layer.register_forward_hook(lambda *_: seen)

    for _ in range(4):
        step()
    (found,) = ask([hook.__closure__[0].cell_contents
                    for hook in layer._forward_hooks.values()])
    assert found.rule == "hooks pile up"
    assert "._forward_hooks (collections.OrderedDict, 4 items)" in str(found.path)


def wrapped(function):
    return functools.wraps(function)(lambda *arguments: function(*arguments))


def taps(functions, wrappers):
    """An object with a method of these functions, a line each, behind so many decorators."""
    lines = [f"    def tap_{i}(x): {each}" for i, each in enumerate(functions)]
    source, names = "\n".join(["def arm(self):", *lines]), {}
    exec(compile(source, __file__, "exec"), names)
    for _ in range(wrappers):
        names["arm"] = wrapped(names["arm"])
    return type("Taps", (), {"arm": names["arm"]})()


@pytest.mark.parametrize("functions, wrappers, told", [
    (["pass"] * 40 + ["self.seen.append(x)"], 0, (42, "tap_40")),
    (["self.seen.append(x)"] * 3, 0, (2, "tap_0")),
    (["return lambda: self.seen.append(x)", "self.seen.append(x)"], 0, (3, "tap_1")),
    (["self.seen.append(x)"], 7, (2, "tap_0"))],
    ids=["after many", "the first", "before those within", "behind decorators"])  # fmt: skip
def test_filled_by_a_function_within_a_method(functions, wrappers, told):
    owner = taps(functions, wrappers)
    owner.seen = [torch.zeros(4) for _ in range(5)]
    (found,) = ask(list(owner.seen))
    assert found.place == ("list of 5", ".seen")
    assert [(line, name.rpartition(".")[2]) for line, name in found.lines] == [told]


def test_kept_errors():
    kept = []

    def fail():
        held = torch.zeros(4)
        raise ValueError(held.numel())

    for _ in range(5):
        try:
            fail()
        except ValueError as error:
            kept.append(error)
    (found,) = ask([error.__traceback__.tb_next.tb_frame.f_locals["held"] for error in kept])
    assert found.rule == "kept exception" and found.place == ("list of 5", "local kept")


def test_attribute_that_is_set():
    class Sum:
        def add(self, more):
            self.total = more

    total = "another of this name"
    holder = Sum()
    holder.add(torch.zeros(()))
    (found,) = ask([holder.total], depth=40)
    assert total and found.place[1] == ".total" and found.rule == "sum keeps its graph"
    assert found.lines == [(line_of(Sum, "self.total = more"),
                            "test_attribute_that_is_set.<locals>.Sum.add")]
    assert found.advice.startswith("write `self.total += x.item()`")


def test_of_several_owners_the_largest():
    class Store:
        def __init__(self):
            self.items, self.spare = {}, []

    few, store, last = [], Store(), None
    for number in range(30):
        last = torch.zeros(4)
        if number % 3 == 0:
            few.append(last)
        else:
            store.items[number] = (last, number)
    made = [x for x, _ in store.items.values()] + few
    (found,) = ask(made)
    assert found.place == ("dict of 20", ".items") and found.through == 20
    assert ": local `store` (" in str(found.path) and last is not None


def test_table_of_several_owners():
    class Cache:
        def __init__(self):
            self.keys = [torch.zeros(4) for _ in range(4)]

    running, sessions = Cache(), {}
    for number in range(4):
        sessions[number] = Cache()
    (found,) = ask([x for each in (*sessions.values(), running) for x in each.keys])
    assert found.place == ("dict of 4", "local sessions") and found.through == 16


def test_two_lists_of_one_object():
    holder = Node()
    holder.wins, holder.losses = [], []
    for number in range(20):
        (holder.wins if number % 4 else holder.losses).append(torch.zeros(4))
    (found,) = ask(holder.wins + holder.losses)
    assert found.place == ("list of 15", ".wins") and found.through == 15
    assert found.advice.startswith("clear wins ")
    players = {"a": holder, "b": Node()}
    del holder
    (found,) = ask(players["a"].wins + players["a"].losses)
    assert found.place == ("list of 15", ".wins")


def test_no_owner_has_a_fair_share():
    """Look-alike: single tensors as attributes, and two in a list."""
    holder = Node()
    for number in range(18):
        setattr(holder, f"part{number}", torch.zeros(4))
    holder.pair = [torch.zeros(4), torch.zeros(4)]
    (found,) = ask([*(value for name, value in vars(holder).items() if name != "pair"),
                    *holder.pair])
    assert found.place[1] == "local holder" and found.through == 20


def test_groups_do_not_mix():
    kept = [[torch.zeros(4) for _ in range(6)] for _ in range(30)]
    found = ask(*[list(each) for each in kept])
    assert [each.place for each in found] == [("list of 6", f"[{i}]") for i in range(30)]
    assert [each.through for each in found] == [6] * 30


def test_nothing_in_python_holds_it():
    (found,) = ask([torch.zeros(4)])
    assert found.path.steps == [] and found.unreached == 1
    assert found.rule == "C++ only" and found.advice.startswith("a C extension holds it, or an array")


def test_last_one_in_a_variable_is_not_the_holder_of_all():
    """What arrays of a subclass keep is not met."""
    numpy = pytest.importorskip("numpy")
    arrays = []
    for _ in range(9):
        hidden = torch.zeros(8)
        arrays.append(hidden.numpy().view(numpy.recarray))
    (found,) = ask([hidden, *(array.base.base for array in arrays)][1:])
    assert found.rule == "C++ only" and "x.numpy()" in found.advice, (found.rule, found.path)
    assert not found.path.steps and len(arrays) == found.targets


def test_a_bound_is_told():
    kept = [torch.zeros(4) for _ in range(4)]
    found = _core.holders([list(kept)], [None], [0], True, 50)
    assert found["cut"] and found["nodes"] <= 50
    assert found["holders"][0]["retained"] is None


@pytest.mark.parametrize("bad", [
    ([[]], [], [0]), ([[]], [None], []), ([()], [None], [0]), ([[]], [3], [0]),
    ([[]], [None], [-1]), ([[]], [None], ["x"])])
def test_bad_questions(bad):
    with pytest.raises((TypeError, OverflowError)):
        _core.holders(*bad, True, 1000)


def test_no_group_and_empty_groups():
    assert _core.holders([], [], [], True, 10**6)["holders"] == []
    (found,) = ask([])
    assert (found.targets, found.path.steps) == (0, [])


# ---- nothing is run, kept or changed


def test_no_code_of_the_user_runs():
    things = hostile_zoo()
    kept = [torch.zeros(4) for _ in range(4)]
    things.append(kept)
    CALLS.clear()
    HostileMeta.armed = True
    try:
        found = _core.holders([list(kept), list(things)], [None] * 2, [0] * 2, True, 10**7)
    finally:
        HostileMeta.armed = False
    assert CALLS == [] and found["holders"][0]["through"] == 4


def test_counts_and_collector_stay_as_they_were():
    kept = [torch.zeros(4) for _ in range(10)]
    ask(list(kept))
    gc.collect()
    gc.disable()
    try:
        counts, stats = [sys.getrefcount(each) for each in kept], gc.get_stats()
        ask(list(kept))
        assert [sys.getrefcount(each) for each in kept] == counts
        assert gc.get_stats() == stats and not gc.isenabled()
    finally:
        gc.enable()
