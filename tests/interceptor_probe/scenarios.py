# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the interceptors must not change: scenarios.py NAME.

What a scenario prints must be the same in each mode (scenario_common.py);
what the probe saw goes as JSON to PROBE_REPORT, with what `note` was told.
"""

import gc
import json
import os
import sys

import scenarios_heaps
import scenarios_places
import scenarios_results
import scenarios_users
from scenario_common import install, note, notes, probe

MODULES = (scenarios_heaps, scenarios_places, scenarios_results,
           scenarios_users)


def main(name):
    sys.stdout.reconfigure(line_buffering=True)
    gc.collect()
    install()
    gc.collect()
    probe.take()
    try:
        next(getattr(module, name) for module in MODULES
             if hasattr(module, name))()
    finally:
        note("counts", probe.counts()) if "counts" not in notes else None
        path = os.environ.get("PROBE_REPORT")
        if path:
            with open(path, "w") as file:
                json.dump(notes, file)


if __name__ == "__main__":
    main(sys.argv[1])
