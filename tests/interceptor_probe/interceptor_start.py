# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Started by a .pth file: hooks each process and sub-interpreter that
PROBE_KIND asks for."""

import os


def start():
    kind = os.environ.get("PROBE_KIND")
    if kind:
        import interceptor_probe
        interceptor_probe.install(kind)
        if os.environ.get("PROBE_LOG"):
            interceptor_probe.log(os.environ["PROBE_LOG"])


start()
