#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# bench/gpu.sh SECONDS [--quick] [PART...]: what needs a GPU, within a budget
# of time: the seed's programs at full size (bench/gpu_seed.sh), the loops, the
# hooks in them, the samples, the programs that grow, pauses, single
# collections, CUMEM_DRIVER=1, device allocations, the other frameworks, the
# seed's ResNet-50, trainers that people use, what is outside the frameworks.
# PARTs (seed exhausted seed_growth frameworks trainers outside observe train
# hooks samples growth freeze collect driver allocations) leave the others out.
# Two GPUs: bench/devices.py, and bench/outside.py again.
# Everything is written below $OUT, else bench/results.  PYTHON picks the
# interpreter; cumem is the installed one, or PYTHONPATH's, or is built here.
set -uo pipefail
cd "$(dirname "$0")/.."
budget=${1:?seconds}
shift
quick=
[ "${1:-}" != --quick ] || { quick=$1; shift; }
benches="hooks train observe freeze collect driver allocations"
checks="exhausted seed_growth frameworks trainers outside"
parts=" ${*:-seed $checks samples growth $benches} "
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
    # What an installation puts beside the package, so that the variable
    # CUMEM_WARN_CYCLES starts it.
    local site=$PWD/build/gpu/site
    mkdir -p "$site"
    cp pyext/cumem.pth pyext/_cumem_start.py "$site"
    echo "import site; site.addsitedir('$site')" >"$site/sitecustomize.py"
    export PYTHONPATH=$PWD/build/gpu/python:$site${PYTHONPATH:+:$PYTHONPATH}
    CUMEM_WARN_CYCLES=1 "$python" -c 'import sys; sys.modules["cumem"]' \
        || { tail -20 "$log"; exit 2; }
}

run_seed() {
    say "the seed's programs at full size"
    PYTHON=$python GPU_SEED_TIMEOUT=$(share 90) \
        bench/gpu_seed.sh "$out/gpu_seed.txt"
    tail -12 "$out/gpu_seed.txt"
}

# One that says itself what is right: its exit status tells.
run_check() {
    local file=$out/${1//_/-}.txt status=0
    if [ "$(share 20)" -lt 20 ]; then
        say "bench/$1.py: no time left"
        return
    fi
    say "bench/$1.py"
    timeout "$(share 120)" "$python" "bench/$1.py" >"$file" 2>>"$log" \
        || status=$?
    tail -12 "$file"
    [ "$status" = 0 ] || { tail -3 "$log"; echo "bench/$1.py: exit $status"; }
}

run_samples() {
    say "samples on the GPU"
    timeout "$(share 420)" "$python" -m pytest -q -p no:cacheprovider \
        tests/test_samples.py >>"$log" 2>&1
    tail -5 "$log"
}

run_growth() {
    say "programs that grow or do not"
    timeout "$(share 200)" "$python" tests/growth_samples.py \
        >"$out/growth-samples.txt" 2>>"$log"
    tail -3 "$out/growth-samples.txt"
}

wanted() { [[ $parts == *" $1 "* ]]; }

# What is left, by as many as still come.
part_of_rest() {
    local name count=0
    for name in ${benches#*"$1"} "$1"; do
        ! wanted "$name" || count=$((count + 1))
    done
    echo $(((end - SECONDS) / count))
}

run_bench() {
    local name=$1 less=$quick seconds
    seconds=$(part_of_rest "$name")
    [ "$name" != hooks ] || less= # it has no fewer cases
    if [ "$seconds" -lt 20 ]; then
        say "$name: no time left"
        return
    fi
    say "bench/$name.py, $seconds s"
    # Each may overrun its time by its last turn: a third more, then it ends.
    timeout $((seconds * 4 / 3 + 30)) "$python" "bench/$name.py" $less \
        --seconds "$seconds" --output "$out" >>"$log" 2>&1 \
        || echo "bench/$name.py: exit $?"
    tail -100 "$log"
}

provide_cumem
"$python" -c 'import cumem; print("cumem", cumem.__version__)'
! wanted seed || run_seed
for name in $checks; do
    ! wanted "$name" || run_check "$name"
done
! wanted samples || run_samples
! wanted growth || run_growth
for name in $benches; do
    ! wanted "$name" || run_bench "$name"
done
say "done"
