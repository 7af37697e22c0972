# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the package says of its types (.pyi, py.typed) against what it has."""

import ast
import importlib
import inspect
import pathlib

import pytest

import cumem

PACKAGE = pathlib.Path(cumem.__file__).resolve().parent
# Who imports these by their names need not know how they are made.
FOR_USERS = ["cumem", "cumem.compat.torch_cycles"]


def stub_of(module):
    source = pathlib.Path(importlib.import_module(module).__file__).name.partition(".")[0]
    folder = PACKAGE.joinpath(*module.split(".")[1:])
    path = folder / "__init__.pyi" if source == "__init__" else folder.with_suffix(".pyi")
    return ast.parse(path.read_text())


def stubs():
    for path in sorted(PACKAGE.rglob("*.pyi")):
        parts = ("cumem", *path.relative_to(PACKAGE).with_suffix("").parts)
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def functions(body):
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def is_property(function):
    return any(isinstance(one, ast.Name) and one.id == "property"
               for one in function.decorator_list)


def names(tree):
    """What a stub offers: its own, and what it imports from us."""
    found = {*functions(tree.body)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.level:
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return {name for name in found if not name.startswith("_") or name == "__version__"}


def written(function):
    """[(name, by position, by name, has a default)] of a stub's function."""
    given = function.args
    places = given.posonlyargs + given.args
    least = len(places) - len(given.defaults)
    found = [(one.arg, True, one in given.args, at >= least) for at, one in enumerate(places)]
    found += [(one.arg, False, True, default is not None)
              for one, default in zip(given.kwonlyargs, given.kw_defaults)]
    return found


def real(function):
    """The same of a Python function."""
    kinds = inspect.Parameter
    return [(one.name, one.kind != kinds.KEYWORD_ONLY, one.kind != kinds.POSITIONAL_ONLY,
             one.default is not kinds.empty)
            for one in inspect.signature(function).parameters.values()
            if one.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]


def unlike(name, stub, thing):
    """Where a stub's function is not that function; a method's `*_` takes all."""
    if is_property(stub):
        return [] if isinstance(thing, property) else [f"{name} is no property"]
    if not callable(thing):
        return [f"{name} is not there"]
    takes_all = any(one.kind == inspect.Parameter.VAR_POSITIONAL
                    for one in inspect.signature(thing).parameters.values())
    if takes_all or written(stub) == real(thing):
        return []
    return [f"{name}: the stub has {written(stub)}, the function {real(thing)}"]


@pytest.mark.parametrize("name", FOR_USERS)
def test_a_stub_has_what_its_module_has(name):
    module, tree = importlib.import_module(name), stub_of(name)
    assert names(tree) == set(module.__all__)


@pytest.mark.parametrize("name", FOR_USERS)
def test_functions_take_what_their_stubs_say(name):
    module, tree = importlib.import_module(name), stub_of(name)
    problems = []
    for function in functions(tree.body).values():
        problems += unlike(function.name, function, getattr(module, function.name, None))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and hasattr(module, node.name):
            cls = getattr(module, node.name)
            for method in functions(node.body).values():
                problems += unlike(f"{node.name}.{method.name}", method,
                                   inspect.getattr_static(cls, method.name, None))
    assert problems == []


def test_the_core_has_what_its_stub_says():
    module = importlib.import_module("cumem._core")
    public = {name for name in vars(module) if not name.startswith(("_", "gc_"))}
    assert {*functions(stub_of("cumem._core").body)} == public


@pytest.mark.parametrize("name", list(stubs()))
def test_every_parameter_and_result_is_annotated(name):
    functions_here = [node for node in ast.walk(stub_of(name)) if isinstance(node, ast.FunctionDef)]
    assert functions_here
    for function in functions_here:
        given = function.args
        bare = [one.arg for one in given.posonlyargs + given.args + given.kwonlyargs
                if one.annotation is None and one.arg not in ("self", "cls")]
        assert (bare, function.returns is None) == ([], False), function.name


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
    assert {*FOR_USERS, "cumem._core"} == {*stubs()}


def section(text, title):
    """What stands under a heading of a docstring."""
    return (text + "\n").partition(f"\n{title}\n{'-' * len(title)}\n")[2].partition("\n\n")[0]


@pytest.mark.parametrize("name", [name for name in cumem.__all__ if inspect.isfunction(getattr(cumem, name))])
def test_help_says_what_goes_in_and_what_comes_out(name):
    function = getattr(cumem, name)
    signature, text = inspect.signature(function), inspect.getdoc(function)
    parameters = section(text, "Parameters")
    assert [one for one in signature.parameters if one not in parameters] == []
    assert "devices" not in signature.parameters or "ValueError" in section(text, "Raises")
    assert f"\n{name}" in f"\n{cumem.__doc__}".replace(":func:`", "\n")
