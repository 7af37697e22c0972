# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cyclereport's drawings: what is drawn, and what is said of the rest."""

import json
import xml.dom.minidom

import pytest

import growth_leaks
import leak_file

run, save = leak_file.run, leak_file.save


@pytest.fixture
def leak(tmp_path):
    """The document of REPORT.md's example: its path."""
    return save(tmp_path / "leak.json", leak_file.example())


def root_of(svg):
    return xml.dom.minidom.parseString(svg).documentElement.tagName


def test_drawings(leak, tmp_path):
    dot = run(leak.name, "--format=dot", cwd=tmp_path)
    assert "digraph" in dot and "Trainer" in dot
    run(leak.name, "--format=svg", "-o", "x.svg", cwd=tmp_path)
    run(leak.name, "--format=svg", "-o", "x.svg", cwd=tmp_path)  # ours
    assert root_of((tmp_path / "x.svg").read_text()) == "svg"


@pytest.mark.parametrize("kind, mark", [("svg", "<svg "), ("dot", "digraph cumem {")])
def test_a_clean_report_is_drawn_empty(tmp_path, kind, mark):
    """It is no bad input: who asks CI to fail on cycles has none."""
    clean = save(tmp_path / "clean.json", leak_file.example() | {"cycles": []})
    show = f"--format={kind}", "--fail-on=cycle"
    drawing = run(clean.name, *show, cwd=tmp_path)
    assert run.error == "cyclereport: clean.json: no finding to draw\n"
    assert drawing.count(mark) == 1 and "written by cyclereport" in drawing
    run(clean.name, *show, "-o", "x", cwd=tmp_path)
    run(clean.name, *show, "-o", "x", cwd=tmp_path)  # ours
    assert (tmp_path / "x").read_text() == drawing
    if kind == "svg":
        assert root_of(drawing) == "svg"


def test_hidden_findings_are_named_where_none_is_drawn(leak, tmp_path):
    run(leak.name, "--format=svg", "--min-bytes=6GiB", cwd=tmp_path)
    assert run.error == "cyclereport: leak.json: no finding to draw (--all shows hidden ones)\n"


def test_growth_is_not_drawn(tmp_path):
    job = save(tmp_path / "job.json", growth_leaks.job().data)
    assert root_of(run(job.name, "--format=svg", "--fail-on=growth", cwd=tmp_path, code=1)) == "svg"
    assert run.error == "cyclereport: job.json: no finding to draw\n"
    save(tmp_path / "both.json", growth_leaks.both().data)
    for top in (1, 3):
        dot = run("both.json", "--format=dot", f"--top={top}", cwd=tmp_path)
        assert dot.count("digraph") == 1 and run.error == ""


def test_what_is_not_drawn_is_said(leak, tmp_path):
    """On standard error: the drawing may go to standard output."""
    def draw(*options):
        drawing = run(leak.name, "--all", *options, cwd=tmp_path)
        return drawing.count("digraph") + drawing.count("<svg "), run.error

    said = "cyclereport: leak.json: drew {} of 17 dead cycles, the largest{}\n".format
    for top in ([], ["--top=3"]):
        assert draw("--format=svg", *top) == (1, said(1, " (the page shows the rest)"))
    assert draw("--format=dot") == (1, said(1, " (--top N draws more)"))
    assert draw("--format=dot", "--top=3") == (3, said(3, " (--top N draws more)"))
    assert draw("--format=dot", "--top=17") == (17, "")
    assert draw("--format=dot", "--top=99") == (17, "")
    run(leak.name, "--format=svg", cwd=tmp_path)
    assert run.error == ""
    everything = json.loads(run(leak.name, "--format=json", "--top=1", cwd=tmp_path))
    assert len(everything["cycles"]) == 17


@pytest.mark.parametrize("name, begin", [
    ("x.svg", "<!-- written by cyclereport -->\n<svg "), ("x.dot", "// written by cyclereport\n"),
    ("x.json", '{"format":"cumem-leak"'), ("x.txt", "cumem [rank 3]: "),
    ("x.html", "<!DOCTYPE html>"), ("x.htm", "<!DOCTYPE html>"), ("x", "<!DOCTYPE html>")])  # fmt: skip
def test_the_ending_says_the_format(leak, tmp_path, name, begin):
    out = run(leak.name, "-o", name, cwd=tmp_path)
    assert (tmp_path / name).read_text().startswith(begin)
    assert (out != "") == (begin == "<!DOCTYPE html>")  # the summary comes with the page
    run(leak.name, "-f", "-o", name, "--format=html", cwd=tmp_path)
    assert (tmp_path / name).read_text().startswith("<!DOCTYPE html>")
