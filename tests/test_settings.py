# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Devices and sizes: the same words by argument, by environment and on a command line."""

import pytest

from cumem import _settings

from process import run_ok


@pytest.mark.parametrize("value, names", [
    (0, "cuda:0"), ("0", "cuda:0"), ("cuda:1", "cuda:1"), ("0,1", "cuda:0,cuda:1"),
    (" 1 , cpu", "cpu,cuda:1"), ([0, "1"], "cuda:0,cuda:1"), ("007", "cuda:7"), ("auto", "auto")])  # fmt: skip
def test_devices_are_names_or_numbers(value, names):
    assert _settings.parse_devices(value) == names


@pytest.mark.parametrize("bad", ["-1", "1.0", "0x1", "\u0661", "1" * 5000, "0,", True])
def test_what_is_no_device_is_refused_and_integers_are_named(bad):
    with pytest.raises(ValueError, match="not a device: .*'cuda:0', 'cpu', 0, 1"):
        _settings.parse_devices(bad)


@pytest.mark.parametrize("text, names", [
    ("0,1", "cuda:0,cuda:1"), ("1", "cuda:1"), ("0", "auto"), ("", "auto")])
def test_devices_of_the_environment(monkeypatch, text, names):
    """A lone 0 is as unset, as in every variable."""
    monkeypatch.setenv("CUMEM_DEVICES", text)
    problems = []
    found = _settings.from_environment("CUMEM_DEVICES", _settings.parse_devices, "auto", problems)
    assert (found, problems) == (names, [])


def test_run_takes_the_first_device_by_its_number(tmp_path):
    run_ok("""
import sys
from cumem import __main__
options = __main__._parser().parse_args(["run", "--devices", "0", "x.py"])
assert __main__._environment(options, "")["CUMEM_DEVICES"] == "cuda:0"
""", cwd=tmp_path)
