# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""docs/reading.md quotes what the program prints, to the letter."""

import pathlib
import re

import leak_file
import pytest

HERE = pathlib.Path(__file__).resolve().parent
QUOTED = re.findall(r"^```text\n(.*?)^```", (HERE.parent / "docs/reading.md").read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def printed():
    return leak_file.run("oom_h200.leak.json", "--format", "text", cwd=HERE)


@pytest.mark.parametrize("block", QUOTED, ids=lambda block: block.split("\n")[0][:30])
def test_quoted_text_is_printed(block, printed):
    assert block in printed
