#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# bench/gpu.sh SECONDS [--quick]: what needs a GPU, within a budget of time:
# the seed's programs at full size (memory runs out before any collection),
# the samples, then the training loops and single collections.  Everything is
# written below $OUT, else bench/results.  PYTHON picks the interpreter; cumem
# is the installed one, or PYTHONPATH's, or is built here.
set -uo pipefail
cd "$(dirname "$0")/.."
budget=${1:?seconds}
quick=${2:-}
out=${OUT:-bench/results}
python=${PYTHON:-python3}
end=$((SECONDS + budget))
mkdir -p "$out"

say() { echo "== $* ($((end - SECONDS)) s left)"; }

# share SECONDS: that many, or what is left of the budget.
share() {
    local left=$((end - SECONDS))
    echo $(($1 < left ? $1 : left))
}

provide_cumem() {
    "$python" -c 'import cumem' 2>/dev/null && return
    say "building cumem"
    cmake -S . -B build/gpu -DPython_EXECUTABLE="$(command -v "$python")" \
        >"$out/build.txt" 2>&1 \
        && cmake --build build/gpu -j "$(nproc)" >>"$out/build.txt" 2>&1
    export PYTHONPATH=$PWD/build/gpu/python${PYTHONPATH:+:$PYTHONPATH}
    "$python" -c 'import cumem' || { tail -20 "$out/build.txt"; exit 2; }
}

# The seed's two leaks; the page must be there although memory ran out.
run_seed() {
    local workload seconds code page
    for workload in simple awaitable; do
        seconds=$(share 90)
        say "seed: $workload, full size, no gc_interval"
        TMPDIR=$PWD/$pages timeout "$seconds" "$python" \
            samples/seed/memory_leak.py --workload "$workload" \
            --warn_tensor_cycles --device cuda:0 \
            $([ "$workload" = simple ] || echo --num_iter 2000) \
            >"$out/seed-$workload.txt" 2>&1
        code=$?
        page=$(ls -S "$pages"/*.html 2>/dev/null | head -1)
        {
            echo "exit code: $code"
            echo "pages: $(ls "$pages"/*.html 2>/dev/null | wc -l)"
        } >>"$out/seed-$workload.txt"
        [ -z "$page" ] || cp "$page" "$out/seed-$workload.html"
        rm -f "$pages"/*.html
        tail -4 "$out/seed-$workload.txt"
    done
}

run_samples() {
    say "samples on the GPU"
    timeout "$(share 150)" "$python" -m pytest -q -p no:cacheprovider \
        tests/test_samples.py >"$out/samples.txt" 2>&1
    tail -5 "$out/samples.txt"
}

run_bench() {
    local name=$1 seconds
    seconds=$(share "$2")
    if [ "$seconds" -lt 20 ]; then
        say "$name: no time left"
        return
    fi
    say "bench/$name.py, $seconds s"
    # Each may overrun its time by its last turn: a third more, then it ends.
    timeout $((seconds * 4 / 3 + 30)) "$python" "bench/$name.py" $quick \
        --seconds "$seconds" --output "$out" >"$out/$name.log" 2>&1 \
        || echo "bench/$name.py: exit $?"
    tail -12 "$out/$name.log"
}

pages=$(mktemp -d -p .)
pages=${pages#./}
trap 'rm -rf "$pages"' EXIT
provide_cumem
"$python" -c 'import cumem; print("cumem", cumem.__version__)'
run_seed
left=$((end - SECONDS))
run_bench observe $((left / 6))
run_bench train $((left * 5 / 12))
run_samples
left=$((end - SECONDS))
run_bench collect $((left * 2 / 3))
say "done"
