# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""cumem run [options] script.py|-m module|-c code [args]: one command, observed."""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from . import _report, _settings
from ._version import __version__

# What a job is stopped or asked by: SLURM's USR1 among them.
_HANDED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def _parser():
    parser = argparse.ArgumentParser(prog="cumem", description=__doc__)
    parser.add_argument("--version", action="version", version=f"cumem {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a Python program; report dead cycles and growth")
    run.add_argument(
        "-o",
        "--output",
        type=_checked(_settings.parse_pattern),
        metavar="FILE",
        help="report file (CUMEM_OUTPUT)",
    )
    run.add_argument(
        "--devices",
        type=_checked(_settings.parse_devices),
        help="what counts, as cuda:0,cuda:1 or 0,1; default: auto, every accelerator",
    )
    run.add_argument(
        "--min-bytes",
        type=_checked(_settings.parse_size),
        metavar="SIZE",
        help="tell nothing smaller; default: 1MiB",
    )
    run.add_argument("--no-stacks", action="store_true", help="no allocation stacks")
    run.add_argument(
        "--error-exitcode",
        type=_checked(_exit_code),
        metavar="N",
        help="exit code, 1 to 255, when a dead cycle or growth was told",
    )
    what = run.add_mutually_exclusive_group()
    what.add_argument("-m", dest="kind", action="store_const", const="-m", help="run a module")
    what.add_argument("-c", dest="kind", action="store_const", const="-c", help="run code")
    run.add_argument("program", help="script.py; with -m a module, with -c code")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    return parser


def _check_program(parser, options):
    """`cumem run python train.py`, as other tools take it: there is no such script."""
    program = options.program
    if not options.kind and not os.path.exists(program) and shutil.which(program):
        parser.error(
            f"{program!r} is a command, not a script: cumem run script.py, cumem run -m module,"
            f" or CUMEM_WARN_CYCLES=1 {program} ..."
        )


def _checked(parse):
    def convert(text):
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _exit_code(text):
    """The system keeps eight bits of it: 256 would be success."""
    if not text.isdecimal() or not 0 < int(text) < 256:
        raise ValueError(f"not an exit code: {text!r}; expected a number from 1 to 255")
    return int(text)


def _environment(options, notes):
    environment = dict(os.environ, CUMEM_WARN_CYCLES="1", CUMEM_RUN_NOTES=notes)
    if options.output:
        # "0" means off in a variable, and is a name here.
        environment["CUMEM_OUTPUT"] = "./0" if options.output == "0" else options.output
    if options.devices:
        environment["CUMEM_DEVICES"] = options.devices
    if options.min_bytes is not None:
        environment["CUMEM_MIN_BYTES"] = str(options.min_bytes)
    if options.no_stacks:
        environment["CUMEM_STACKS"] = "0"
    return environment


def _least(options):
    """Bytes below which nothing is told, as the program has it."""
    if options.min_bytes is not None:
        return options.min_bytes
    return _settings.least_bytes([])


def _has_heard(process, told):
    """Whether what was told us was told the program too: the terminal interrupts the whole group.

    Of a hang-up it may have told the session's leader alone, us.
    """
    from_kernel = told.si_code > 0 and told.si_signo != signal.SIGHUP
    return from_kernel and os.getpgid(process.pid) == os.getpgrp()


def _hand_on(process, told):
    if told.si_signo != signal.SIGCHLD and not _has_heard(process, told):
        process.send_signal(told.si_signo)


def _run(command, environment):
    """The program's exit code; signals that reach us meanwhile are the program's to handle."""
    awaited = {*_HANDED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
        )
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who ignores it does not hear it
        while process.poll() is None:
            _hand_on(process, signal.sigwaitinfo(awaited))
        while signal.sigtimedwait(_HANDED_ON, 0) is not None:
            pass  # it came too late for the program, and is not ours
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    code = process.returncode
    return 128 - code if code < 0 else code


def _is_found(note, least):
    """Whether a process found something: cyclereport decides; without a report, what was told."""
    report = note.strip(b"\0")  # one for each finding that was told
    told = len(report) < len(note)
    show = ["--format", "text", "-o", os.devnull, "--min-bytes", str(least)]
    judge = [_report.PROGRAM, report, *show, "--fail-on", "cycle,growth"]
    verdict = subprocess.run(judge).returncode if report else 2
    return verdict == 1 or told and verdict != 0


def main(arguments=None):
    """Run the command line; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check_program(parser, options)
    start = [options.kind, options.program] if options.kind else [options.program]
    with tempfile.TemporaryDirectory(prefix="cumem-") as folder:
        command = [sys.executable, *start, *options.arguments]
        code = _run(command, _environment(options, folder))
        if options.error_exitcode is not None:
            notes = [path.read_bytes() for path in pathlib.Path(folder).iterdir()]
            if any(_is_found(note, _least(options)) for note in notes):
                return options.error_exitcode
    return code


if __name__ == "__main__":
    sys.exit(main())
