#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# After tools/setup.sh demo: an ordinary training script under
# CUMEM_WARN_CYCLES=1, then its report as text and as a page.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
script=$PWD/samples/demo_train.py
rm -rf demo
mkdir demo
cd demo

show() { printf '\n$ %s\n' "$*"; }

show "CUMEM_WARN_CYCLES=1 python samples/demo_train.py"
CUMEM_WARN_CYCLES=1 "$bin/python" "$script"
reports=(leak-*.json)
if [ ! -e "${reports[0]}" ]; then
    echo "cumem: the demo found nothing, which is a fault of cumem" >&2
    "$bin/python" -c 'import cumem; print(cumem.status())' >&2
    exit 1
fi
show "cyclereport demo/${reports[0]}"
"$bin/cyclereport" "${reports[0]}"
page=${reports[0]/#leak-/cycle-}
page=${page%.json}.html
[ -e "$page" ] || { echo "cumem: no page was written" >&2; exit 1; }
printf '\nThe report: %s\nThe page:   file://%s\n' \
    "$PWD/${reports[0]}" "$PWD/$page"
