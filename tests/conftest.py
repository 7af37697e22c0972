# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""For every test: helpers beside it, and the signals a person's job has.

A job in the background of a script ignores SIGINT, and so does all that it
starts; CPython's own tests wait for ever for an interrupt then.
"""

import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
