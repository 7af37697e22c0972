# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cyclereport where all that grows is hidden: that nobody is told is said."""

import growth_leaks
import leak_file
import pytest

NOTHING = "cumem [rank 3]: no dead cycle holds device memory, and nothing told grows"


@pytest.fixture
def text(tmp_path):
    job = leak_file.save(tmp_path / "job.json", growth_leaks.job().data)
    return lambda *options: leak_file.run(job.name, "--format=text", *options, cwd=tmp_path)


def test_growth_that_was_known_is_said(text):
    assert text("--baseline=job.json").startswith(NOTHING + " (")


def test_small_growth_is_said(text):
    assert text("--min-bytes=1TiB").startswith(NOTHING + "\nhidden: ")
