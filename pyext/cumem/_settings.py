# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the user asks for, by argument or by environment, in one form."""

import functools
import logging
import os
import re
import sys
import time

from . import _core

# As the C parser has it (detector/size.c): what a page was made with, a job takes too.
_SIZE = re.compile(r"0*([0-9]{1,16})(?:\.([0-9]+))? *([kmgt]?)(i?b)?\Z", re.IGNORECASE | re.ASCII)
_MOST_BYTES = 1 << 53  # a double has all up to here, as JSON's readers do
# Those that a reader of the core can name (pyext/frameworks/torch_reader.c).
_DEVICE = re.compile(r"(cpu|(cuda|xpu|mps|hpu|privateuseone)(:\d+)?)\Z")
_NUMBER = re.compile(r"\d{1,4}\Z", re.ASCII)
_LETTERS = ("p", "r", "h", "t", "%")
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
_MOST_DIGITS = 15  # a double has all of them, as JSON's readers do
_WORLD_VARIABLES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")


def parse_size(value):
    """Bytes from an integer or a text such as ``"256MiB"``; an integer beyond 2**53 counts as that.

    KiB, MiB, GiB, TiB and the letters K, M, G, T are powers of 1,024; KB, MB, GB,
    TB of 1,000.  Raises ValueError, naming the value, for anything else.
    """
    size = _size_of(value)
    if size is None or not 0 <= size <= _MOST_BYTES:
        raise ValueError(
            f"not a size: {value!r}; expected bytes, at most 2**53, or a text such as '256MiB'"
        )
    return size


def _size_of(value):
    """None: what it says is not known."""
    if isinstance(value, int) and not isinstance(value, bool):
        return min(value, _MOST_BYTES)
    match = _SIZE.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    whole, part, letter, ending = (group or "" for group in match.groups())
    if not letter and (part or ending.lower() == "ib"):
        return None
    thousand = 1000 if ending.lower() == "b" else 1024
    unit = thousand ** " kmgt".index(letter.lower() or " ")
    part = part[:3]  # whole numbers only: the same everywhere
    return int(whole) * unit + int(part or 0) * unit // 10 ** len(part)


def parse_devices(value):
    """``"auto"`` or a comma-separated list of device names.

    Accepts ``"auto"``, a name (``"cuda"``, ``"cuda:1"``, ``"cpu"``), an integer
    (a CUDA device; ``"1"`` too), a ``torch.device``, or a list of these.  Raises
    ValueError that names the value.
    """
    if value is None or value == "auto":
        return "auto"
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple, set, frozenset)):
        items = [items]
    names = sorted({_device_name(item) for item in items})
    if not names:
        raise ValueError(f"no device in {value!r}; expected 'auto', 'cuda', 'cuda:0', 0, ...")
    return ",".join(names)


def _device_name(item):
    if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
        return f"cuda:{item}"
    name = str(item).strip()
    if isinstance(item, str) and _NUMBER.match(name):
        return f"cuda:{int(name)}"
    if _DEVICE.match(name):
        return name
    raise ValueError(f"not a device: {item!r}; expected 'auto', 'cuda', 'cuda:0', 'cpu', 0, 1, ...")


def absolute(path):
    """The path that a later chdir() does not move; as it is where the current directory is gone."""
    try:
        return os.path.abspath(path)
    except OSError:
        _core.let_through()
        return path


def parse_choice(*choices):
    """A parser that lets nothing pass but these words."""
    def parse(text):
        if text not in choices:
            raise ValueError(f"expected {' or '.join(choices)}")
        return text

    return parse


def parse_file(path):
    """The absolute path of a file that can be read; raises ValueError that says why it cannot."""
    try:
        with open(path, "rb"):
            return os.path.abspath(path)
    except OSError as error:
        _core.let_through()
        raise ValueError(error.strerror) from None


def parse_switch(value):
    """True for ``1`` and its like, False for ``0``; raises ValueError that names the value."""
    words = {"1": True, "on": True, "yes": True, "true": True,
             "0": False, "off": False, "no": False, "false": False}  # fmt: skip
    word = value.strip().lower()
    if word not in words:
        raise ValueError(f"not a switch: {value!r}; expected 1 or 0")
    return words[word]


def from_environment(variable, parse, default, problems, off=None):
    """The parsed value of a variable; its default, and a line in `problems`, when unreadable.

    `off`: what "0" means, where that is not the default.
    """
    text = os.environ.get(variable, "")
    if text == "0" and off is not None:
        return off
    if text in ("", "0"):
        return default
    try:
        return parse(text)
    except ValueError as error:
        _core.let_through()
        problems.append(f"{variable}={text!r} is not used: {error}")
        return default


def warn_of(problems):
    """Log each line of `problems`."""
    for problem in problems:
        logging.getLogger("cumem").warning("cumem: %s", problem)


def least_bytes(problems):
    """CUMEM_MIN_BYTES: below so many nothing is told."""
    return from_environment("CUMEM_MIN_BYTES", parse_size, 1 << 20, problems, off=0)


def _number(variables):
    for variable in variables:
        text = os.environ.get(variable, "")
        if text.isdecimal():
            return int(text[:_MOST_DIGITS])  # whatever stands there, a start does not fail of it
    return -1


def rank():
    """Rank of this process in its job, -1 when it has none."""
    return _number(_RANK_VARIABLES)


def world_size():
    """Number of processes in the job, -1 when not known."""
    return _number(_WORLD_VARIABLES)


def _automatic_name():
    return "leak-r%r-%h-%p.json" if rank() >= 0 else "leak-%p.json"


def output_path_in(directory):
    """The automatic name in a directory; ValueError: it is none."""
    name = os.fsdecode(directory)
    if not os.path.isdir(name):
        raise ValueError(f"no such directory: {directory!r}")
    return output_path(name.replace("%", "%%"))


def parse_pattern(text):
    """A file name as output_path() has it; raises ValueError that names a letter it does not know."""
    for letter in re.findall(r"%(.?)", text, re.DOTALL):
        if letter not in _LETTERS:
            raise ValueError(
                f"not a file name: {text!r}; expected %p, %r, %h, %t or %%, not '%{letter}'"
            )
    return text


def output_path(pattern=None):
    """The report's file name, its %-letters filled in; in a directory, or by itself, the automatic one.

    %p pid, %r rank, %h host, %t start time, %% a percent sign.  Absolute, so
    that a later chdir() does not move it.  Raises ValueError for any other letter.
    """
    name = _filled(pattern or _automatic_name())
    if name.endswith(os.sep) or os.path.isdir(name):
        name = os.path.join(name, _filled(_automatic_name()))
    return absolute(name)


def note_folder(path, asked):
    """Log, once, that the report at `path` has no folder yet; `asked`: who named it."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        _tell_of_folder(folder, asked)


@functools.cache
def _tell_of_folder(folder, asked):
    """It is not made here: a program that makes it later finds it as it expects."""
    import shlex

    name = shlex.quote(folder)
    what = f"{name} is no folder" if os.path.lexists(folder) else f"no folder yet: mkdir -p {name}"
    warn_of([f"{asked}: {what}"])


def _filled(pattern):
    values = {
        "p": str(os.getpid()),
        "r": str(max(rank(), 0)),
        "h": re.sub(r"[^A-Za-z0-9._-]", "_", os.uname().nodename),
        "t": time.strftime("%Y%m%d-%H%M%S"),
        "%": "%",
    }
    return re.sub(r"%(.)", lambda match: values[match[1]], parse_pattern(pattern), flags=re.DOTALL)


def is_worker_process():
    """True in a child that multiprocessing started (DataLoader workers are such)."""
    process = sys.modules.get("multiprocessing.process")
    spawned = "--multiprocessing-fork" in sys.orig_argv  # before it has told itself so
    return spawned or getattr(process, "_parent_process", None) is not None
