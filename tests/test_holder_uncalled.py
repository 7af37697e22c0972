# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Which function would empty a container, if anybody called it: pyext/holders/uncalled.h.

All code of a process is read, so each case is a program of its own."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

ASK = """
import atexit, json, sys
from abc import ABC
import torch
import cumem
from cumem import _core, _runtime
_runtime._prepare()
_core.watch("cpu", True, False)

def tell(groups):
    (found,) = _core.holders(groups, [None], [0], True, 10**7)["holders"]
    print(json.dumps([found["rule"], found["advice"]]))

def fill(kept):
    for _ in range(20):
        kept.rows.append(torch.zeros(300))
"""
CLASS = """
class Kept{n}{base}:
    def __init__(self):
        super().__init__()
        self.rows = []

    def drop{n}_all{n}(self):
        self.rows.clear()

kept{n} = Kept{n}()
"""
TELL = "fill(kept{n}); tell([list(kept{n}.rows)])\n"
NOT_CALLED, OTHER = "not called", "container grows"
# What stands between the class and the question.  Each has names of its own, but for
# `rows`: what empties one for all is the last.
CASES = {
    "": NOT_CALLED,
    "def later{n}(kept): kept.drop{n}_all{n}()": OTHER,
    "def later{n}(kept): getattr(kept, 'drop{n}_all{n}')()": OTHER,
    "def later{n}(kept, what): getattr(kept, 'drop{n}_' + what)()": OTHER,
    "def later{n}(kept, what): getattr(kept, f'{{what}}_all{n}')()": OTHER,
    "def later{n}(kept):\n    for name in ('drop{n}_all{n}', 'x'): getattr(kept, name)()": OTHER,
    "later{n} = [kept{n}.drop{n}_all{n}]": OTHER,
    "later{n} = (Kept{n}.drop{n}_all{n},)": OTHER,
    "def out{n}():\n    def within(kept): kept.drop{n}_all{n}()\n    return within": OTHER,
    "exec('def later{n}(kept): return kept.drop{n}_all{n}')": OTHER,
    "exec('def later{n}(kept): return kept.drop{n}_all{n}', json.__dict__)": NOT_CALLED,
    "def later{n}(kept): kept.drop{n}()": NOT_CALLED,
    "def later{n}(kept, what): getattr(kept, 'on_' + what)()": NOT_CALLED,
    "def later{n}(kept): return 'drop{n}' + '_one'": NOT_CALLED,
    "class Other{n}:\n    def drop{n}_all{n}(self): pass": NOT_CALLED,
    "def begin_epoch{n}(kept): kept.rows = []\nbegin_epoch{n}(kept{n})": OTHER,
}
BASES = {"(ABC)": NOT_CALLED, "(torch.nn.Module)": OTHER, "(json.JSONEncoder)": OTHER}


def run(tmp_path, program, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    script = tmp_path / "program.py"
    script.write_text(ASK + program)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=180,
                          cwd=tmp_path, env=os.environ)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def one(between="", base="", n=0):
    return (CLASS + between + "\n" + TELL).format(n=n, base=base)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """{what stands between, or the base: (rule, advice)}, by one program."""
    asked = [("", base) for base in BASES] + [(between, "") for between in CASES]
    program = "".join(one(between, base, n) for n, (between, base) in enumerate(asked))
    found = run(tmp_path_factory.mktemp("program"), program)
    return {between or base: answer for (between, base), answer in zip(asked, found, strict=True)}


@pytest.mark.parametrize("which", [*CASES, *BASES])
def test_who_may_call_it(which, answers):
    assert answers[which][0] == {**CASES, **BASES}[which]


def test_what_is_said(answers):
    assert answers[""][1] == ("call Kept3.drop3_all3() where an epoch or a phase ends: it would "
                              "empty rows, and no line calls it")


def test_a_function_of_a_module_that_has_run(tmp_path):
    module = ("rows = []\n\ndef add(row): rows.append(row)\n\n"
              "def drop_all(): rows.clear()\n")
    program = "import store\nfor _ in range(20): store.add(torch.zeros(300))\ntell([list(store.rows)])\n"
    ((rule, advice),) = run(tmp_path, program, store=module)
    assert rule == "not called" and advice.startswith("call drop_all() where"), advice
    ((rule, _),) = run(tmp_path, program.replace("import store", "import store, user"), store=module,
                   user="import store\n\ndef later(): store.drop_all()\n")
    assert rule != "not called"


MAIN = """
rows{n} = []

def add{n}(row): rows{n}.append(row)

def forget{n}_rows{n}(): rows{n}.clear()
{between}
for _ in range(20): add{n}(torch.zeros(300))
tell([list(rows{n})])
"""
OF_MAIN = {
    "": NOT_CALLED,
    "def later{n}(): forget{n}_rows{n}()": OTHER,
    "if len(sys.argv) > 3: forget{n}_rows{n}()": OTHER,
    "atexit.register(forget{n}_rows{n})": OTHER,
    "later{n} = forget{n}_rows{n}": OTHER,
    "__all__ = ['forget{n}_rows{n}']": OTHER,
    "forget{n}_rows{n} = torch.no_grad()(forget{n}_rows{n})": OTHER,
    "class Other{n}:\n    def forget{n}_rows{n}(self): pass": NOT_CALLED,
}


def test_a_function_of_the_main_module(tmp_path):
    """Where it is defined it is named, which is no call."""
    program = "".join(MAIN.format(n=n, between=between.format(n=n)) for n, between in enumerate(OF_MAIN))
    found = run(tmp_path, program)
    assert {between: rule for between, (rule, _) in zip(OF_MAIN, found, strict=True)} == OF_MAIN
    assert found[0][1].startswith("call forget0_rows0() where"), found[0]


CELLS = """
import sys
names = {{"__name__": "__main__"}}
for number, cell in enumerate([{cells}]):
    exec(compile(cell, f"/tmp/ipykernel_1/{{number}}.py", "exec"), names)
"""


def test_cells_of_a_notebook_are_not_all_lines(tmp_path):
    """The next cell may call it, and one that has run may have."""
    made, asked = one().split("fill(")
    cells = CELLS.format(cells=", ".join(map(repr, [ASK, made, "fill(" + asked])))
    done = subprocess.run([sys.executable, "-c", cells], capture_output=True, text=True, timeout=180,
                          cwd=tmp_path, env=os.environ)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0] == OTHER


def test_packages_are_asked_but_not_torch(tmp_path):
    """One that knows the name may have been given the object."""
    package = tmp_path / "site-packages" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def end(each):\n    each.drop0_all0()\n")
    named = f"sys.path.insert(0, {str(package.parent)!r})\nimport trainer\n"
    assert run(tmp_path, named + one())[0][0] == OTHER
    package.rename(package.parent / "tqdm")
    assert run(tmp_path, named.replace("trainer", "tqdm") + one())[0][0] == NOT_CALLED


NESTED = "outer = Kept0(); outer.inner = kept0; del kept0\n"
ASK_NESTED = "fill(outer.inner); tell([list(outer.inner.rows)])\n"


@pytest.mark.parametrize("asked, rule", [("", OTHER), (ASK_NESTED, NOT_CALLED)])
def test_lines_of_a_main_module_that_is_gone_are_not_known(asked, rule, tmp_path):
    """But what was found while it ran.  The class is met twice on the way."""
    program = CLASS + NESTED + asked + ("fill(outer.inner)\n"
                                        "atexit.register(lambda: tell([list(outer.inner.rows)]))\n")
    assert run(tmp_path, program.format(n=0, base=""))[-1][0] == rule
