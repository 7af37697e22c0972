# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A library is one, too, where pip has put it into a folder of PYTHONPATH."""

import os

import pytest
from process import NODES, run_ok

ASK = NODES + """
import trainer.loop
with cumem.observe_tensor_cycles(print):
    node = Node(trainer.loop.make())
    node.me = node
    del node
    found = cumem.find_cycles().report
frames = [frame for site in found["sites"] for frame in site["frames"]]
libraries = {frame.get("library", False) for frame in frames if frame["filename"].endswith("loop.py")}
"""


@pytest.fixture
def folder(tmp_path):
    package = tmp_path / "libs" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "loop.py").write_text("import torch\ndef make():\n    return torch.zeros(99)\n")
    return tmp_path / "libs"


@pytest.mark.parametrize("installed, library", [
    ("trainer-1.0.dist-info", True), ("other-1.0.dist-info", False), ("trainer.egg-info", False)])
def test_what_pip_has_put_there_is_a_library(installed, library, folder, tmp_path):
    (folder / installed).mkdir()
    environment = {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    run_ok(ASK + f"assert libraries == {{{library}}}, libraries", cwd=tmp_path, **environment)


def test_the_folder_that_one_is_in_is_the_users(folder):
    (folder / "trainer-1.0.dist-info").mkdir()
    run_ok(ASK + "assert libraries == {False}, libraries", cwd=folder)


def test_a_folder_that_is_gone_and_one_that_is_no_text(tmp_path):
    """The layouts are proven all the same."""
    run_ok("""
        import os, sys
        sys.path[:0] = [os.path.join(os.getcwd(), "gone"), 7]
        os.mkdir("here"); os.chdir("here"); os.rmdir("../here")
        sys.argv = []
        import cumem
        assert "struct" in cumem.status()["layouts"]["frames"], cumem.status()["layouts"]
        """, cwd=tmp_path)
