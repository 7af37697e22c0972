# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The rules of tests/layers.py hold, and each can fail."""

import re

import layers
import pytest


@pytest.mark.parametrize("rule", layers.RULES, ids=lambda rule: rule.__name__)
def test_rule_holds(rule):
    assert list(rule()) == []


def test_clang_tidy_reads_every_folder_of_the_product():
    script = (layers.ROOT / "tools" / "test.sh").read_text()
    read = re.search(r"c_files ([a-z_ ]+) \| grep", script)[1].split()
    assert set(read) == set(layers.ARROWS) - {"tests"}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    for folder in layers.ARROWS:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "README.md").write_text("Why.\n")

    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"/* {layers.SPDX} */\n{text}")

    return write


CASES = [
    ("include_follows_the_arrows", "graph/a.c", '#include "../reports/leak.h"\n'),
    ("include_follows_the_arrows", "detector/a.h", '#  include "../graph/finding.h"\n'),
    ("include_follows_the_arrows", "graph/a.c", '#include "../../elsewhere.h"\n'),
    ("one_foreign_library_one_file", "reports/text.c", "#include <cJSON.h>\n"),
    ("include_follows_the_rooms", "pyext/objects/a.c", '#include "../session/session.h"\n'),
    ("include_follows_the_rooms", "pyext/a.c", "int x;\n"),
    ("one_foreign_library_one_file", "graph/a.c", "#include <Python.h>\n"),
    ("one_foreign_library_one_file", "reports/main.c", "#include <graphviz/gvc.h>\n"),
    ("every_c_test_has_its_module", "tests/t_nothing.c", "int x;\n"),
    ("no_file_is_long", "graph/a.c", "int x;\n" * 600),
    ("no_function_is_long", "graph/a.c", "int\nf(void)\n{\n" + "    g();\n" * 58 + "}\n"),
]


@pytest.mark.parametrize(("rule", "name", "text"), CASES)
def test_rule_finds_a_breach(tree, rule, name, text):
    rule = getattr(layers, rule)
    assert list(rule()) == []
    tree(name, text)
    (breach,) = rule()
    assert breach.startswith(name)


def test_licence_and_readme_are_asked_for(tree, tmp_path):
    (tmp_path / "graph" / "a.c").write_text("int x;\n")
    (tmp_path / "graph" / "README.md").write_text("\n" * 21)
    (tmp_path / "pyext" / "README.md").unlink()
    assert len(list(layers.every_c_file_names_its_licence())) == 1
    assert len(list(layers.every_folder_has_its_readme())) == 2


def test_allowed_includes_are_no_breach(tree, tmp_path):
    tree("reports/leak_json.c", '#include <cJSON.h>\n#include "leak.h"\n#include "../graph/f.h"\n')
    tree("pyext/session/core.c", '#include <Python.h>\n#include "../../reports/leak.h"\n#include "../objects/a.h"\n')
    tree("tests/x_probe/x.c", '#include <Python.h>\n#include "../../pyext/objects/objects.h"\n')
    assert list(layers.include_follows_the_arrows()) == []
    assert list(layers.include_follows_the_rooms()) == []
    assert list(layers.one_foreign_library_one_file()) == []


@pytest.mark.parametrize(("body", "breaches"), [
    ("pass", 1), ("raise ValueError from None", 1), ("x = 1; _core.let_through()", 1),
    ("with contextlib.suppress(OSError): _core.let_through()", 2),
    ("_core.let_through()", 0), ("_core.unraisable(f)", 0), ("raise", 0), ("x = 1; raise", 0)])
def test_an_except_clause_asks_first(tmp_path, monkeypatch, body, breaches):
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    (tmp_path / "pyext" / "cumem").mkdir(parents=True)
    for name in ("_a.py", "_start.py"):
        (tmp_path / "pyext" / "cumem" / name).write_text(f"try:\n    f()\nexcept OSError:\n    {body}\n")
    assert len(list(layers.no_except_swallows_what_a_handler_raised())) == breaches
