# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A library is one, too, where pip has put it into a folder of PYTHONPATH."""

import os
import subprocess
import sys

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


def path(folder):
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


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
    run_ok(ASK + f"assert libraries == {{{library}}}, libraries", cwd=tmp_path, **path(folder))


def test_the_folder_that_one_is_in_is_the_users(folder):
    (folder / "trainer-1.0.dist-info").mkdir()
    run_ok(ASK + "assert libraries == {False}, libraries", cwd=folder, **path(folder))


def test_the_scripts_folder_is_the_users(folder, tmp_path):
    (folder / "trainer-1.0.dist-info").mkdir()
    script = folder / "train.py"
    script.write_text(ASK + "assert libraries == {False}, libraries")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ODD = """
class Text(str):
    def __contains__(self, text):
        raise KeyError(text)
    split = __contains__
class Entry:
    def __fspath__(self):
        raise KeyError("asked")
sys.path[:0] = [os.path.join(os.getcwd(), "gone"), 7, pathlib.Path("."), Entry(), [], b"."]
sys.path.append(Text("."))
"""


@pytest.mark.parametrize("before", [
    ODD, "sys.argv = []\n", "os.mkdir('here'); os.chdir('here'); os.rmdir('../here')\n"])
def test_what_is_odd_there_is_passed_over(before, folder, tmp_path):
    """Nothing of it is asked, layouts are proven, and other folders are found all the same."""
    (folder / "trainer-1.0.dist-info").mkdir()
    asked = 'assert cumem.status()["layouts"]["frames"] == "struct layout", cumem.status()["layouts"]'
    run_ok("import os, pathlib, sys, torch\n" + before + ASK
           + f"assert libraries == {{True}}, libraries\n{asked}", cwd=tmp_path, **path(folder))
