# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Started by cumem.pth, or from Python 3.15 on by cumem.start (PEP 829).

A module of its own, outside the package, because naming ``cumem._start`` in
cumem.start would import all of cumem in every process.  Where both files are
read (3.15 on), the presence of cumem.start switches the line in cumem.pth off.
"""


_started = False


def main():
    """Start cumem when CUMEM_WARN_CYCLES is set, not empty and not "0" or its like.

    Once: site reads the files of a virtual environment twice.  Not where it
    would decline: to load its core there would turn the GIL on for the program.
    """
    global _started
    import os
    import sys

    asked = os.environ.get("CUMEM_WARN_CYCLES", "").strip().lower()
    if _started or asked in ("", "0", "off", "no", "false"):
        return
    _started = True
    if "t" in sys.abiflags:
        os.write(2, b"cumem: not started: this CPython is free-threaded\n")
        return
    try:
        from cumem._start import main as start

        start()
    except Exception as error:  # a broken installation is no reason not to run
        os.write(2, f"cumem: not started: {error!r}\n".encode(errors="replace"))
