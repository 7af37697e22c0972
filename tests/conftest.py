# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""For every test: the signals of a program that a person started.

A job in the background of a script ignores SIGINT, and so does all that it
starts; CPython's own tests wait for ever for an interrupt then.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
