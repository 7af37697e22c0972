# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""An object's class can be changed under cumem as without it.

CPython compares the tp_free of both classes, and cumem wraps that of the
tensors' classes: so of each class that is made later, too.
"""

import pytest
from process import run_ok

CLASSES = """
import ctypes, os, torch, cumem
from torch import nn
observe = lambda: cumem.observe_tensor_cycles(lambda report: None, devices="cpu")

class EarlyMeta(type(torch.Tensor)): pass        # no class has it yet
class Early(torch.Tensor): pass

def change_class(cls, base=torch.Tensor):
    made = torch.zeros(2).as_subclass(base)
    made.__class__ = cls
    assert type(made) is cls
    made.__class__ = base
    torch.utils.swap_tensors(made, torch.ones(2).as_subclass(cls))
    assert type(made) is cls and made.sum() == 2

def slots(cls):                          # tp_alloc and tp_free, behind 38 words of a type
    alloc, _, free = (ctypes.c_void_p * 3).from_address(id(cls) + 304)
    return alloc, free

def make_classes():
    class Sub(torch.Tensor): pass
    class Weight(nn.Parameter): pass
    class Meta(type(torch.Tensor)):
        def __init__(cls, *args, **named):
            super().__init__(*args, **named)
    class WithMeta(torch.Tensor, metaclass=Meta): pass
    class WithEarlyMeta(torch.Tensor, metaclass=EarlyMeta): pass
    class WithMetaOfMeta(torch.Tensor, metaclass=type("MetaOfMeta", (Meta,), {})): pass
    class Slots(Sub): __slots__ = ()
    return [Sub, WithMeta, WithEarlyMeta, WithMetaOfMeta, Slots], Weight
"""

CHANGES = """
def change_all():
    classes, weight = make_classes()
    for cls in [*classes, Early]: change_class(cls)
    p = nn.Parameter(torch.zeros(1))
    p.__class__ = weight
    assert type(p) is weight
    class Other(torch.Tensor): pass
    classes[0].__bases__ = (Other,)
    return classes
"""


def test_classes_made_under_cumem(tmp_path):
    run_ok(CLASSES + CHANGES + """
with observe():
    classes = change_all()
change_all()
for cls in classes: change_class(cls)
for _ in range(2):
    with observe():
        for cls in classes: change_class(cls)
        classes += change_all()
for cls in classes: change_class(cls)
""", cwd=tmp_path)


def test_classes_made_before_torch_is_whole(tmp_path):
    run_ok(CLASSES + CHANGES + "change_all()", cwd=tmp_path, CUMEM_WARN_CYCLES=1)


def test_classes_made_in_a_forked_child(tmp_path):
    run_ok(CLASSES + CHANGES + """
with observe():
    child = os.fork()
    if child == 0:
        change_all()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
""", cwd=tmp_path)


def test_classes_made_later_are_heard_as_those_before(tmp_path):
    run_ok(CLASSES + """
plain = slots(torch.Tensor)
with observe():
    classes, _ = make_classes()
    assert slots(torch.Tensor)[0] != plain[0] and slots(torch.Tensor)[1] != plain[1]
    assert {slots(cls) for cls in [Early, *classes]} == {slots(torch.Tensor)}
assert {slots(cls) for cls in [torch.Tensor, Early, *classes, make_classes()[1]]} == {plain}
""", cwd=tmp_path)


@pytest.mark.parametrize("name", ["TypeError", "RuntimeError"])
def test_a_class_that_cannot_be_made(name, tmp_path):
    """The metaclass's error reaches the program as it is."""
    run_ok(CLASSES + f"""
class Meta(type(torch.Tensor)):
    def __init__(cls, *args):
        raise {name}("no")
with observe():
    try:
        class Sub(torch.Tensor, metaclass=Meta): pass
    except {name} as error:
        assert str(error) == "no"
    else:
        raise AssertionError
    try:
        type(torch.Tensor).__init__()
    except TypeError: pass
    else:
        raise AssertionError
    change_class(Early)
""", cwd=tmp_path)
