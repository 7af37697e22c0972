# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem.pth and cumem.start: exactly one start when asked, else nothing.

A folder like site-packages is made, with the three files as the wheel installs
them and a package ``cumem`` that only counts; the interpreter then treats it
as a site folder.  So this holds on each version without a build.
"""

import pathlib
import shutil
import subprocess
import sys

import pytest

PYEXT = pathlib.Path(__file__).resolve().parent.parent / "pyext"
# As on a build with a GIL, which a free-threaded one is too for this.
READ_THE_SITE = "import site, sys; sys.abiflags = ''; site.addsitedir(sys.argv[1]); "


@pytest.fixture
def site(tmp_path):
    for name in ("cumem.pth", "cumem.start", "_cumem_start.py"):
        shutil.copy(PYEXT / name, tmp_path)
    package = tmp_path / "cumem"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_start.py").write_text("def main():\n    print('started')\n")
    return tmp_path


def run(site, code="", **environment):
    result = subprocess.run(
        [sys.executable, "-S", "-c", READ_THE_SITE + code, site],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stderr == ""
    return result.stdout


@pytest.mark.parametrize("value", ["1", "yes", "2"])
def test_starts_once_when_asked(site, value):
    assert run(site, CUMEM_WARN_CYCLES=value) == "started\n"


def test_starts_once_where_site_reads_twice(site):
    """As it does in a virtual environment."""
    again = "site.addsitedir(sys.argv[1])"
    assert run(site, again, CUMEM_WARN_CYCLES="1") == "started\n"


def test_r19_a_free_threaded_python_is_left_alone(site):
    """To import the core would turn its GIL on."""
    result = subprocess.run(
        [sys.executable, "-S", "-c", READ_THE_SITE.replace("''", "'t'")
         + "print('cumem' in sys.modules)", site],
        env={"CUMEM_WARN_CYCLES": "1"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert result.stdout == "False\n"
    assert result.stderr == "cumem: not started: this CPython is free-threaded\n"


@pytest.mark.parametrize("environment", [{}, {"CUMEM_WARN_CYCLES": ""}, {"CUMEM_WARN_CYCLES": "0"}])
def test_imports_nothing_of_cumem_when_not_asked(site, environment):
    code = "print([name for name in sys.modules if name.startswith('cumem')])"
    assert run(site, code, **environment) == "[]\n"


def test_pth_costs_one_line_when_not_asked(site):
    """Before 3.15 not even the starter is imported."""
    if sys.version_info >= (3, 15):
        (site / "cumem.start").unlink()  # then cumem.pth is what is read
    assert run(site, "print('_cumem_start' in sys.modules)") == "False\n"


def test_start_file_names_a_callable(site):
    """What 3.15 calls is there, and without the variable returns at once."""
    entry = (site / "cumem.start").read_text().strip()
    code = f"import pkgutil; print(pkgutil.resolve_name({entry!r})())"
    assert run(site, code).endswith("None\n")


def test_a_broken_install_does_not_stop_python(site):
    """A package that cannot be imported is reported by site, not fatal."""
    (site / "cumem" / "_start.py").write_text("raise ImportError('broken')\n")
    result = subprocess.run(
        [sys.executable, "-S", "-c", READ_THE_SITE + "print('still here')", site],
        env={"CUMEM_WARN_CYCLES": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0
    assert result.stdout == "still here\n"
    assert "broken" in result.stderr
