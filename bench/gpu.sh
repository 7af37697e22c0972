#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# bench/gpu.sh SECONDS [--quick] [PART...]: what needs a GPU, within a budget
# of time: the seed's programs at full size (bench/gpu_seed.sh), the loops, the
# samples, single collections, device allocations.  PARTs (seed observe train
# samples collect allocations) leave the others out.  Everything is written below $OUT, else bench/results.  PYTHON picks the interpreter; cumem
# is the installed one, or PYTHONPATH's, or is built here.
set -uo pipefail
cd "$(dirname "$0")/.."
budget=${1:?seconds}
shift
quick=
[ "${1:-}" != --quick ] || { quick=$1; shift; }
parts=" ${*:-seed observe train samples collect allocations} "
out=${OUT:-bench/results}
python=${PYTHON:-python3}
end=$((SECONDS + budget))
mkdir -p "$out"
log=$out/gpu.log
: >"$log"

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
        >"$log" 2>&1 \
        && cmake --build build/gpu -j "$(nproc)" >>"$log" 2>&1
    export PYTHONPATH=$PWD/build/gpu/python${PYTHONPATH:+:$PYTHONPATH}
    "$python" -c 'import cumem' || { tail -20 "$log"; exit 2; }
}

run_seed() {
    say "the seed's programs at full size"
    PYTHON=$python GPU_SEED_TIMEOUT=$(share 90) \
        bench/gpu_seed.sh "$out/gpu_seed.txt"
    tail -12 "$out/gpu_seed.txt"
}

run_samples() {
    say "samples on the GPU"
    timeout "$(share 150)" "$python" -m pytest -q -p no:cacheprovider \
        tests/test_samples.py >>"$log" 2>&1
    tail -5 "$log"
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
        --seconds "$seconds" --output "$out" >>"$log" 2>&1 \
        || echo "bench/$name.py: exit $?"
    tail -"${3:-12}" "$log"
}

wanted() { [[ $parts == *" $1 "* ]]; }

provide_cumem
"$python" -c 'import cumem; print("cumem", cumem.__version__)'
! wanted seed || run_seed
left=$((end - SECONDS))
! wanted observe || run_bench observe $((left / 5))
! wanted train || run_bench train $((left * 5 / 12))
! wanted samples || run_samples
left=$((end - SECONDS))
! wanted allocations || run_bench allocations $((left * 2 / 3)) 120
left=$((end - SECONDS))
! wanted collect || run_bench collect $((left * 2 / 3))
say "done"
