# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Second copies of the weights: which are told, and which have the same sizes and names
and are left alone."""

import pytest
from process import NODES, run_ok

PROGRAM = NODES + """
import copy, io
from torch import nn

def make_model():
    return nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512))

def load(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return torch.load(file)

def train(model, each=lambda x, y, step: 0.0, steps=20):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        x = torch.randn(8, 512)
        y = model(x)
        (y.square().mean() + each(x, y, step)).backward()
        optimizer.step()
        optimizer.zero_grad()

def told():
    return [row for row in cumem.growth() if row["verdict"] == "lingering"]

handle = cumem.warn_tensor_cycles()
"""

LOOK_ALIKES = {
    "reference model that is used": """
reference, policy = make_model(), make_model()
policy.load_state_dict(reference.state_dict())
def distance(x, y, step):
    with torch.no_grad():
        wanted = reference(x)
    return (y - wanted).square().mean()
train(policy, distance)
""",
    "recurrent teacher": """
teacher, student = nn.LSTM(128, 128, 2), nn.LSTM(128, 128, 2)
student.load_state_dict(teacher.state_dict())
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(4, 2, 128)
    with torch.no_grad():
        wanted = teacher(x)[0]
    (student(x)[0] - wanted).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "weights of a file that training is held to": """
model = make_model()
anchor = load(model)
model.load_state_dict(anchor)
def distance(x, y, step):
    return sum((parameter - anchor[name]).square().sum()
               for name, parameter in model.named_parameters())
train(model, distance)
""",
    "weights of a file that are called with": """
model = make_model()
weights = load(model)
model.load_state_dict(weights)
def distance(x, y, step):
    with torch.no_grad():
        wanted = torch.func.functional_call(model, weights, x)
    return (y - wanted).square().mean()
train(model, distance)
""",
    "average that data is written to": """
average, model = make_model(), make_model()
model.load_state_dict(average.state_dict())
def update(x, y, step):
    for kept, new in zip(average.parameters(), model.parameters()):
        kept.data.mul_(0.9).add_(new.data, alpha=0.1)
    return 0.0
train(model, update)
""",
    "average that is used now and then": """
average, model = make_model(), make_model()
model.load_state_dict(average.state_dict())
def update(x, y, step):
    if step % 5 == 4:
        with torch.no_grad():
            for kept, new in zip(average.parameters(), model.parameters()):
                kept.lerp_(new, 0.1)
    return 0.0
train(model, update)
""",
    "target network": """
online, target = make_model(), make_model()
target.load_state_dict(online.state_dict())
train(online)
""",
    "weights to go back to": """
model = make_model()
best = copy.deepcopy(model.state_dict())
first = {name: value.clone() for name, value in model.state_dict().items()}
train(model)
""",
    "model to go back to": """
model = make_model()
before = copy.deepcopy(model)
train(model)
""",
    "two models of one kind": """
model, other = make_model(), make_model()
train(model)
""",
    "weights that were taken over whole": """
model = make_model()
weights = load(model)
model.load_state_dict(weights, assign=True)
train(model)
""",
    "weights of another model's sizes": """
small = load(nn.Sequential(nn.Linear(256, 1024)))
model = make_model()
model.load_state_dict(load(model))
train(model)
""",
    "small weights": """
model = nn.Sequential(nn.Linear(512, 64), nn.Tanh(), nn.Linear(64, 512))
weights = load(model)
model.load_state_dict(weights)
train(model)
""",
}


@pytest.mark.parametrize("what", LOOK_ALIKES)
def test_look_alike_is_left_alone(what, tmp_path):
    run_ok(PROGRAM + LOOK_ALIKES[what] + "\nassert told() == [], told()\n", cwd=tmp_path)


def test_who_holds_it_is_named(tmp_path):
    run_ok(PROGRAM + """
class Trainer:
    def __init__(self):
        self.pretrained, self.model = make_model(), make_model()
        self.model.load_state_dict(self.pretrained.state_dict())
trainer = Trainer()
train(trainer.model)
row, = told()
assert row["rule"] == "second copy of the weights" and row["category"] == "parameter", row
assert row["advice"].startswith("set self.pretrained = None"), row["advice"]
assert {"0.weight", "2.weight"} <= set(row["names"]), row
assert 2 << 20 <= row["bytes"] <= (2 << 20) + 8192, row
assert row["holder"][-1]["edge"].endswith("pretrained"), row["holder"]
del trainer.pretrained
assert told() == []
""", cwd=tmp_path)


def test_wrapped_names_are_the_same(tmp_path):
    run_ok(PROGRAM + """
model = make_model()
weights = {"module." + name: value for name, value in load(model).items()}
model.load_state_dict({name[7:]: value for name, value in weights.items()})
train(model)
row, = told()
assert row["category"] == "other" and "del weights" in row["advice"], row
""", cwd=tmp_path)


def test_what_is_let_go_is_not_told_at_the_end(tmp_path):
    run_ok(PROGRAM + """
model = make_model()
weights = load(model)
model.load_state_dict(weights)
def let_go(x, y, step):
    if step == 25:
        weights.clear()
    return 0.0
train(model, let_go, 40)
from cumem import _copies
assert _copies._state["told"] == {}, _copies._state
""", cwd=tmp_path)


def test_nothing_is_kept_alive_and_no_attribute_is_asked(tmp_path):
    run_ok(PROGRAM + """
import weakref
class Loud(nn.Sequential):
    asked = []
    def __getattr__(self, name):
        self.asked.append(name)
        return super().__getattr__(name)
    def parameters(self, recurse=True):
        self.asked.append("parameters")
        return super().parameters(recurse)
pretrained, model = Loud(*make_model()), make_model()
model.load_state_dict(pretrained.state_dict())
Loud.asked.clear()
gc.collect()
train(model)
assert len(told()) == 1 and Loud.asked == [], (told(), Loud.asked)
gone = weakref.ref(pretrained)
del pretrained
assert gone() is None
""", cwd=tmp_path)


def test_touched_is_what_code_has_in_its_hands(tmp_path):
    run_ok(PROGRAM + """
from cumem import _core
def make():
    return [make_model(), make_model()] + [torch.zeros(4) for _ in range(3)]
def compute(tensor):
    return tensor * 2
things = make()
assert _core.touch([[one] for one in things]) is True
assert _core.touched() == [False] * 5
compute(things[2])
torch.zeros(4) + things[3]
things[0](torch.zeros(512))
assert _core.touched() == [True, False, True, True, False], _core.touched()
assert _core.touch([]) is True
assert _core.touched() == []
for wrong in (None, [None], [()]):
    try:
        _core.touch(wrong)
        raise SystemExit("taken")
    except TypeError:
        pass
assert _core.touched() == []
""", cwd=tmp_path)


def test_objects_are_looked_through_only_where_a_copy_may_be(tmp_path):
    run_ok(PROGRAM + """
from cumem import _copies
looked = []
search = _copies._search
_copies._search = lambda: looked.append(None) or search()
model = make_model()
workspace = torch.zeros(5, 1 << 20)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    model(torch.randn(8, 512)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
assert looked == [], looked
model = make_model()
weights = load(model)
model.load_state_dict(weights)
train(model)
assert looked and len(told()) == 1
""", cwd=tmp_path)


def test_an_optimizer_for_each_of_many_tasks_is_not_searched_for_copies_each_time(tmp_path):
    """Each search is a walk over the heap: two are had at once, the others are paid for."""
    run_ok(PROGRAM + """
heap = [[i] for i in range(300_000)]
heads = []
for task in range(10):
    heads.append(nn.Linear(512, 512))
    train(heads[-1], steps=6)
looks = cumem.status()["looks"]["growth"]
assert 2 <= looks["count"] <= 4 and looks["seconds"] >= looks["longest"] > 0, looks
""", cwd=tmp_path)


def test_a_name_that_is_no_utf8_is_left_out(tmp_path):
    """All growth was switched off by it."""
    run_ok(PROGRAM + """
model = nn.ModuleDict({"\\udce9": nn.Linear(512, 512), "a\\0b": nn.Linear(512, 512)})
model.forward = lambda x: model["a\\0b"](model["\\udce9"](x))
weights = load(model)
model.load_state_dict(weights)
train(model)
row, = told()
assert row["names"] == ["a"], row
""", cwd=tmp_path)


def test_a_copy_is_told_after_many_parameters_that_are_gone(tmp_path):
    run_ok(PROGRAM + """
from cumem import _copies
_copies._MOST = 8
for _ in range(3):
    train(make_model(), steps=3)
    gc.collect()
model = make_model()
weights = load(model)
model.load_state_dict(weights)
train(model)
assert len(told()) == 1
""", cwd=tmp_path)
