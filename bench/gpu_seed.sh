#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# The two leaks of samples/seed/memory_leak.py at the blog's own size (2**26
# floats) and with no gc interval; then the first of them with automatic
# collection off, where device memory runs out: the scan on out-of-memory and at
# exit must find them, the callback must run and the page must be drawn.  Needs
# a GPU and an installed cumem.
#
#     bench/gpu_seed.sh [result file]        default bench/results/gpu_seed.txt
#     PYTHON=python3  GPU_SEED_TIMEOUT=300 (seconds a workload)
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
result=${1:-$here/bench/results/gpu_seed.txt}
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$(dirname "$result")"
failed=0

{
    echo "command: bench/gpu_seed.sh"
    "$python" -c 'import platform, torch, cumem
print("python", platform.python_version(), "torch", torch.__version__,
      "cumem", cumem.__version__)
print("device", torch.cuda.get_device_name(0),
      torch.cuda.get_device_properties(0).total_memory // 2**30, "GiB")' ||
        exit 2
} >"$result" 2>&1 || { cat "$result"; exit 2; }

run_path='import gc, runpy, sys
if sys.argv.pop(1) == "off":
    gc.disable()
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")'

for case in simple-on awaitable-on simple-off; do
    workload=${case%-*}
    pages=$scratch/$case
    mkdir "$pages"
    start=$(date +%s)
    TMPDIR=$pages timeout "${GPU_SEED_TIMEOUT:-300}" "$python" \
        -c "$run_path" "${case#*-}" \
        "$here/samples/seed/memory_leak.py" --warn_tensor_cycles \
        --workload "$workload" >"$pages/log" 2>&1
    code=$?
    seconds=$(($(date +%s) - start))
    oom=$(grep -c 'OutOfMemoryError' "$pages/log")
    drawn=$(grep -l '<svg' "$pages"/*.html 2>/dev/null | wc -l)
    found=$(cat "$pages"/*.html 2>/dev/null | grep -c 'memory_leak.py')
    {
        echo "--- $workload, automatic collection ${case#*-}: exit code $code, $seconds s"
        echo "out of memory logged: $oom; pages: $(ls "$pages" |
            grep -c 'html$'), with a drawing: $drawn, naming the file: $found"
        grep -E '^(INFO|WARNING|ERROR)' "$pages/log" | sed "s,$scratch/,,; 6q"
    } >>"$result"
    if [ "$code" -ne 0 ] || [ "$drawn" -eq 0 ] || [ "$found" -eq 0 ]; then
        echo "FAILED: $workload" >>"$result"
        tail -n 20 "$pages/log" | sed "s,$scratch/,," >>"$result"
        failed=1
    fi
done
cat "$result"
exit $failed
