# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Devices and sizes: the same words by argument, by environment and on a command line."""

import subprocess

import pytest

import leak_file
from cumem import __main__, _settings
from process import LEAK, run_ok


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


def test_what_run_is_told_is_not_off():
    options = __main__._parser().parse_args(["run", "--devices", "0", "-o", "0", "x.py"])
    variables = __main__._environment(options, "")
    assert (variables["CUMEM_DEVICES"], variables["CUMEM_OUTPUT"]) == ("cuda:0", "./0")


SIZES = [
    ("0", 0), ("1", 1), ("1 ", 1), ("512 B", 512), ("7b", 7), ("1.5KiB", 1536), ("1.5 GiB", 3 << 29),
    ("64k", 1 << 16), ("256MiB", 1 << 28), ("2g", 1 << 31), ("2t", 1 << 41), ("1kB", 1000),
    ("100MB", 100_000_000), ("2GB", 2_000_000_000), ("1.5TB", 1_500_000_000_000), ("1.0009KB", 1000),
    ("0" * 30 + "5", 5), ("9007199254740992", 1 << 53), ("8192TiB", 1 << 53)]  # fmt: skip
NO_SIZES = ["x", "1XB", "1iB", "1.5", "1.5B", "1.MiB", "MiB", "1 M i", "1MiBs", "1e3", "0x10", "1,5MiB",
            "\u0661", "9" * 400, "9007199254740993", "8193TiB", "8192.1TiB", "99999999TiB"]  # fmt: skip


def shown_by_cyclereport(tmp_path, size):
    """Whether it takes the size, and hides under it."""
    report = leak_file.save(tmp_path / "leak.json", leak_file.example())
    return [leak_file.program(), report, "--format=text", f"--min-bytes={size}"]


@pytest.mark.parametrize("text, size", SIZES)
def test_sizes_are_read_alike(tmp_path, text, size):
    assert _settings.parse_size(text) == size
    first, second = (subprocess.check_output(shown_by_cyclereport(tmp_path, given), text=True)
                     for given in (text, size))  # fmt: skip
    assert first == second


@pytest.mark.parametrize("bad", [*NO_SIZES, -1, 1.5, None, True])
def test_what_is_no_size_is_refused_alike(tmp_path, bad):
    with pytest.raises(ValueError, match="not a size") as caught:
        _settings.parse_size(bad)
    assert repr(bad) in str(caught.value)
    if isinstance(bad, str):
        done = subprocess.run(shown_by_cyclereport(tmp_path, bad), capture_output=True, text=True)
        assert done.returncode == 2 and "expected bytes, or a text such as 256MiB" in done.stderr


def test_an_integer_without_end_is_the_most_and_a_line_of_a_file_is_read():
    assert _settings.parse_size(1 << 80) == _settings.parse_size((1 << 53) + 1) == 1 << 53
    assert _settings.parse_size(" 16MiB\n") == 16 << 20


def test_a_size_of_many_digits_does_not_stop_the_start(tmp_path):
    done = run_ok(LEAK, cwd=tmp_path, CUMEM_WARN_CYCLES=1, CUMEM_MIN_BYTES="9" * 400)
    assert f"CUMEM_MIN_BYTES='{'9' * 400}' is not used: not a size" in done.err
    assert "not started" not in done.err and "DEAD CYCLE x3" in done.err
