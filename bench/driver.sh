#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# bench/driver.sh: the hook of CUDA's driver on a machine with a GPU.  Builds
# libcumem_driver.so and the C tests of the hooks without Python, compares the
# layouts with the toolkit's headers where there are some, then runs
# bench/driver.py.  Everything goes to stdout; about five minutes.  PYTHON
# picks the interpreter (with torch), BUILD the folder.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
build=${BUILD:-build/driver}
library=$build/python/cumem/libcumem_driver.so

# Without CMake or what the whole tree needs, the compiler alone will do.
build_library() {
    cmake -S . -B "$build" -DCUMEM_PYTHON=OFF -DCUMEM_TESTS=ON >"$build.log" 2>&1 \
        && cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 && return
    echo "cmake did not build it ($(tail -1 "$build.log")); trying ${CC:-cc}"
    mkdir -p "$(dirname "$library")"
    "${CC:-cc}" -std=gnu11 -O2 -g -fPIC -shared -fvisibility=hidden \
        -Wl,-z,nodelete -Wl,-soname,libcumem_driver.so -o "$library" \
        allocator_hooks/{inject,subscription,tally,holdings,callbacks,caller}.c \
        allocator_hooks/{driver_call,process_use}.c \
        detector/{alloc,arena,index,lock,table,text}.c -lpthread -ldl
}

mkdir -p "$(dirname "$build")"
build_library || exit 2
echo "== visible symbols: $(nm -D --defined-only "$library" | awk '{print $3}' | xargs)"
for test in "$build"/tests/t_{caller,driver,driver_call,driver_layout,holdings,inject,process_use,replay,subscription,tally}; do
    [ ! -x "$test" ] || echo "$(basename "$test"): $("$test" 2>&1 | tail -1)"
done
exec timeout "${TIMEOUT:-540}" "$python" bench/driver.py "$library" "$@"
