# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the text and the page say of garbage that was read in part."""

from test_cyclereport import run, text_of


def test_of_what_was_read_in_part_it_tells_the_least(tmp_path):
    """98,000 of 100,000 dead objects left out: what is known is no "at most"."""
    def change(document):
        document["lost"] = {"events": 0, "nodes": 98_000, "reason": "a bound"}
    whole = text_of(tmp_path, lambda document: None)
    told = text_of(tmp_path, change)
    assert "up to" in whole and "at most" in whole and "at least" not in whole
    assert told.startswith("cumem [rank 3]: at least 5.1 of 71.4 GiB at cuda:0's peak (iteration 412) was dead\n")
    assert ", at least " in told and "at most" not in told and "up to" not in told
    run("leak.json", "--output", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "<li>at least <b>5.1 GiB</b> at once" in page and "<h1>At least 5.1 of 71.4 GiB" in page
