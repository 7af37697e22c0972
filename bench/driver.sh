#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# bench/driver.sh: is what allocator_hooks/driver_layout.h says of CUPTI and the
# driver what the toolkit's headers here say?  Builds the C tests of the driver's
# hook without Python and runs them; the layouts are checked by the compiler, and
# left out where there is no cupti.h.  BUILD picks the folder.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/driver}
cmake -S . -B "$build" -DCUMEM_PYTHON=OFF -DCUMEM_TESTS=ON
cmake --build "$build" -j "$(nproc)"
exec ctest --test-dir "$build" --output-on-failure \
    -R 't_(caller|driver.*|holdings|inject|process_use|subscription|tally)$'
