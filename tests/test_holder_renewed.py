# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What is set anew before it is read, by all code that there is: pyext/holders/renewed.h.

Each attribute has a name of its own here, as all functions of these tests are read."""

import dataclasses
import sys
import types

import pytest

from test_holders import ask, watched  # noqa: F401

torch = pytest.importorskip("torch")

LARGER = "one that gets larger"
own_mask = past = seen = None


def is_renewed(owner, *names):
    """Who writes owner.name has read it."""
    (found,) = ask([getattr(owner, name) for name in names], category=LARGER)
    return found.renewed


def cat(*parts):
    return torch.cat([part for part in parts if part is not None])


class Trainer:
    def __init__(self):
        self.rows = self.kept = self.peeked = self.sent = None

    def step(self):
        self.own_batch = torch.zeros(300)
        self.own_fresh, self.loss = self.own_batch * 2, self.own_batch.sum()
        return self.own_fresh + self.own_batch

    def add(self):
        self.rows = cat(self.rows, torch.zeros(300))

    def add_by_a_getter(self):
        self.kept = cat(self.so_far(), torch.zeros(300))

    def so_far(self):
        return self.kept

    def peek(self):
        self.peeked = torch.zeros(300)

    def send(self, rows):
        self.sent = cat(rows, torch.zeros(300))


class Late(Trainer):
    def late(self):
        return self.peeked


class Other:
    def __init__(self):
        self.own_batch = 0
        self.own_fresh = [0]

    def step(self):
        self.own_batch += 1
        return self.own_fresh[-1] + self.own_batch


@dataclasses.dataclass
class State:
    own_hidden: torch.Tensor = None
    told: torch.Tensor = None


class Slots:
    __slots__ = ("own_rank",)


def test_attributes_of_self():
    trainer, _ = Trainer(), Other()
    trainer.step()
    assert is_renewed(trainer, "own_batch")
    assert is_renewed(trainer, "own_fresh")
    assert is_renewed(trainer, "own_batch", "own_fresh")


def test_attributes_that_get_longer():
    trainer = Trainer()
    trainer.add()
    trainer.add_by_a_getter()
    assert not is_renewed(trainer, "rows")
    assert not is_renewed(trainer, "kept")


def test_one_that_another_class_reads():
    """Late.peek() is Trainer's, and what late() finds was there before."""
    late, trainer = Late(), Trainer()
    late.peek()
    trainer.peek()
    assert not is_renewed(late, "peeked")
    assert is_renewed(trainer, "peeked")


def test_one_that_is_handed_back():
    trainer = Trainer()
    for _ in range(3):
        trainer.send(trainer.sent)
    assert not is_renewed(trainer, "sent")


class Split:
    """Sets in one method what others read."""

    def __init__(self):
        self.own_rows = self.own_left = self.own_parts = self.own_way = None

    def run(self):
        self.own_rows = torch.zeros(300)
        self.own_measure()
        self.own_left = cat(self.left_over(), torch.zeros(300))
        self.own_parts = torch.zeros(300)
        return [self.own_parts[i] for i in range(2)], (lambda: self.own_parts)()

    def own_measure(self):
        return self.own_scale() + self.own_rows.sum()

    def own_scale(self):
        return self.own_rows.max()

    def left_over(self):
        return self.own_left

    def walk(self):
        self.own_way = torch.zeros(300)
        self.look_around()

    def look_around(self):
        return self.own_way


def wander(split):
    split.look_around()
    split.walk()


def test_one_that_methods_read_which_are_called_then():
    split = Split()
    split.run()
    assert is_renewed(split, "own_rows")
    assert is_renewed(split, "own_parts")


def test_one_that_a_method_reads_which_is_called_before():
    split = Split()
    split.run()
    wander(split)
    assert not is_renewed(split, "own_left")
    assert not is_renewed(split, "own_way")


class Stepped:
    def prepare(self):
        self.own_inputs = torch.zeros(300)

    def step(self):
        self.prepare()
        self.own_outputs = self.own_inputs * 2

    def add(self):
        self.own_total = cat(self.own_total, torch.zeros(300))

    def remember(self, rows):
        self.own_past = rows


def run_steps(stepped):
    for _ in range(3):
        stepped.step()
        assert len(stepped.own_outputs) + len(stepped.own_inputs) == 600
    return stepped.own_outputs, stepped.own_inputs


def run_longer(stepped):
    stepped.own_total = stepped.own_past = None
    for _ in range(3):
        stepped.add()
        stepped.remember(cat(stepped.own_past, torch.zeros(300)))
    return stepped.own_total, stepped.own_past


def test_one_that_is_read_by_who_has_called_the_step():
    stepped = Stepped()
    run_steps(stepped)
    assert is_renewed(stepped, "own_outputs")
    assert is_renewed(stepped, "own_inputs")


def test_one_that_who_calls_hands_back_longer():
    stepped = Stepped()
    run_longer(stepped)
    assert not is_renewed(stepped, "own_total")
    assert not is_renewed(stepped, "own_past")


class Called:
    def run(self):
        self.own_input = torch.zeros(300)
        return self.own_input

    def on_end(self):
        return self.own_input


def test_one_that_a_method_reads_which_nobody_calls():
    """A library may, at any time."""
    called = Called()
    called.run()
    assert not is_renewed(called, "own_input")


class Applied(torch.nn.Module):
    def run(self):
        self.own_context = torch.zeros(300)
        return self.forward(1)

    def forward(self, x):
        return self.own_context


def test_one_that_forward_reads():
    """Who calls the module does not name it."""
    applied = Applied()
    applied.run()
    assert not is_renewed(applied, "own_context")


def test_attributes_of_a_state():
    state = State()
    for _ in range(3):
        state.own_hidden = torch.zeros(300)
        state.told = cat(state.told, state.own_hidden)
    assert is_renewed(state, "own_hidden")
    assert not is_renewed(state, "told")


def test_slots_and_classes():
    state = Slots()
    for _ in range(3):
        state.own_rank = torch.zeros(300)
        Slots.own_height = state.own_rank * 2
    assert is_renewed(state, "own_rank")
    assert is_renewed(Slots, "own_height")
    del Slots.own_height


def test_two_names():
    """The one is set anew from the other, which is the same tensor."""
    state = types.SimpleNamespace(before=torch.zeros(1))
    for _ in range(3):
        state.longer = cat(state.before, torch.zeros(300))
        state.before = state.longer
    assert not is_renewed(state, "longer")
    state.before = None
    assert is_renewed(state, "longer")


def test_a_name_that_is_a_text():
    state = types.SimpleNamespace(spelt=None)
    for _ in range(3):
        state.spelt = cat(getattr(state, "spelt"), torch.zeros(300))
    assert not is_renewed(state, "spelt")


def test_a_text_that_is_no_name():
    state = types.SimpleNamespace(written=None)
    for _ in range(3):
        state.written = torch.zeros(300)
        print("written", state.written.sum())
    assert is_renewed(state, "written")


def test_only_once():
    """Nothing says that it is set again."""
    state = types.SimpleNamespace(once=torch.zeros(300))
    assert not is_renewed(state, "once")


def set_all():
    global own_mask, past
    own_mask = torch.ones(300)
    past = cat(past, own_mask)
    return own_mask + past


def set_seen():
    global seen
    seen = cat(had_seen(), torch.ones(300))


def had_seen():
    return seen


def test_variables_of_a_module():
    set_all()
    set_seen()
    assert is_renewed(sys.modules[__name__], "own_mask")
    assert not is_renewed(sys.modules[__name__], "past")
    assert not is_renewed(sys.modules[__name__], "seen")


def test_a_container_has_it_too():
    trainer = Trainer()
    trainer.step()
    kept = [*vars(trainer).values()]
    assert not is_renewed(trainer, "own_batch")
    kept.clear()
    assert is_renewed(trainer, "own_batch")


def test_items_of_a_dict():
    """Who has allocated it is not known here."""
    state = {}
    for _ in range(3):
        state["mean"] = torch.zeros(300)
    assert not ask([*state.values()], category=LARGER)[0].renewed
