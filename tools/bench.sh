#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# After tools/setup.sh demo: every measurement with modest sizes, under ten
# minutes together; each writes a file in bench/results/ that names the machine
# and the command.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/pip install -q objgraph refcycle || true
measure() {
    echo "== bench/$1.py"
    .venv/bin/python "bench/$1.py" "${@:2}"
}
measure train --seconds 150
measure observe --seconds 45
measure collect --seconds 90
measure freeze --seconds 50
measure scan --seconds 90
measure allocations --seconds 60
measure page --turns 3 --peer-seconds 5
