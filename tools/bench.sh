#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# After tools/setup.sh demo: every measurement, one after another; each writes
# a file in bench/results/ that names the machine and the command.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/pip install -q objgraph refcycle || true
for script in bench/bench_*.py; do
    echo "== $script"
    .venv/bin/python "$script"
done
