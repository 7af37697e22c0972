# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Where no iteration was seen, what the text and the page count are slices of time."""

import pytest

import growth_leaks
import memory_leaks
from leak_file import save
from test_cyclereport import run, text_of

EXHAUSTED = {"iteration": 5, "error": "OutOfMemoryError", "device": "cuda:0", "asked_bytes": 1 << 30}


@pytest.mark.parametrize("by, unit, other", [
    ("step", "iteration", "time slice"), ("time", "time slice", "iteration")])
def test_what_is_counted_has_its_name(tmp_path, by, unit, other):
    def change(document):
        document["timeline"] = {"by": by, "devices": []}
        document["exhausted"] = EXHAUSTED
    told = text_of(tmp_path, change)
    assert f"memory ran out on cuda:0 at {unit} 5:" in told
    assert f"at cuda:0's peak ({unit} 412) was dead" in told
    run("leak.json", "--output", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert f"<h1>Memory ran out on cuda:0 at {unit} 5: " in page and f"<li>{unit} 1 to 412</li>" in page
    assert f"({other} " not in page and f"<li>{other} " not in page


def test_a_device_has_slices_of_time(tmp_path):
    leak = memory_leaks.oom()
    for by, head, unit in (("step", "Iterations", "iterations"), ("time", "Time slices", "time slices")):
        leak.data["timeline"] = {"by": by, "devices": []}
        save(tmp_path / "leak.json", leak.data)
        run("leak.json", "--output", "page.html", cwd=tmp_path)
        page = (tmp_path / "page.html").read_text()
        assert f"<h4>{head}</h4>" in page and f"after</span> each of {unit} " in page


def test_collections_are_in_slices_of_time(tmp_path):
    leak = growth_leaks.slices()
    save(tmp_path / "leak.json", leak.data)
    run("leak.json", "--output", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "<th>time slice</th><th>generation</th>" in page
    assert ">iteration<" not in page and ">iterations<" not in page
