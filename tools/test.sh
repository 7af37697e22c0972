#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# After tools/setup.sh test: every check, each named before it runs.  All run
# also when one fails; the last lines say which did, and so does the exit
# status.  tools/test.sh NAME... runs only those.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
all=(c sanitized threads layers format tidy python)
failed=()

# build_c FOLDER OPTION...
build_c() {
    local folder=$1
    shift
    cmake -S . -B "$folder" -G Ninja -DCUMEM_TESTS=ON \
        -DPython_EXECUTABLE="$bin/python" "$@" >/dev/null
}

# prove_c FOLDER OPTION...: the C tests, built and run.
prove_c() {
    build_c "$@" && ninja -C "$1" --quiet \
        && prove --jobs "$(nproc)" "$1"/tests/t_*
}

# And once more with its figures, precision and recall of the verdicts.
check_c() {
    prove_c build/c -DCUMEM_PYTHON=ON \
        && prove --comments build/c/tests/t_verdict
}

check_sanitized() {
    UBSAN_OPTIONS=print_stacktrace=1 prove_c build/sanitized \
        -DCUMEM_PYTHON=OFF -DCMAKE_BUILD_TYPE=Debug \
        -DCM_SANITIZE=address,undefined
}

# Those that make threads, under the thread sanitizer.
check_threads() {
    local names
    mapfile -t names < <(grep -l pthread_create tests/t_*.c \
        | xargs -n 1 basename -s .c)
    build_c build/threads -DCUMEM_PYTHON=OFF -DCMAKE_BUILD_TYPE=Debug \
        -DCM_SANITIZE=thread \
        && ninja -C build/threads --quiet "${names[@]}" \
        && prove --jobs "$(nproc)" "${names[@]/#/build/threads/tests/}"
}

check_layers() { "$bin/python" tests/layers.py; }

c_files() { git ls-files --cached --others --exclude-standard "$@"; }

check_format() {
    # One line for each file; clang-format -i FILE mends it.
    c_files '*.c' '*.h' | xargs "$bin/clang-format" --dry-run -Werror 2>&1 \
        | sed -n 's/\(^[^ ]*\):[0-9]*:[0-9]*: error: /\1: /p' | uniq -c
}

# run_tidy OPTION...  The flag is gcc's (CMakeLists.txt): clang before 18 knows
# none such.
run_tidy() {
    mkdir -p build/tidy
    sed 's/ -mtls-dialect=gnu2//' build/c/compile_commands.json \
        >build/tidy/compile_commands.json
    c_files allocator_hooks detector graph reports pyext | grep '\.c$' \
        | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p build/tidy "$@" \
            2>/dev/null | { grep 'error: ' || true; }
}

# With the analyzer's short paths: a quarter of the time that all take.
check_tidy() {
    local option options=()
    for option in -Xclang -analyzer-config -Xclang mode=shallow; do
        options+=("--extra-arg=$option")
    done
    run_tidy "${options[@]}"
}

# Not one of all: `tools/test.sh tidy_deep`, after `tools/test.sh c`.
check_tidy_deep() { run_tidy; }

# The samples' programs run on all cores; the other files beside each other: with
# torch's own threads besides, each waits for the others'.
check_python() {
    local samples=(tests/test_samples.py tests/test_growth_samples.py)
    local cores status=0
    cores=$(nproc) # before the variable, which it obeys
    local -x OMP_NUM_THREADS=1
    "$bin/python" -m pytest -q "${samples[@]}" || status=1
    "$bin/python" -m pytest -q tests "${samples[@]/#/--ignore=}" \
        --numprocesses "$((cores < 4 ? cores : 4))" --dist loadfile \
        || status=1
    return "$status"
}

for name in "${@:-${all[@]}}"; do
    echo "== $name"
    started=$SECONDS
    if "check_$name"; then
        echo "== $name passed in $((SECONDS - started)) s"
    else
        echo "== $name FAILED"
        failed+=("$name")
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "make test: failed: ${failed[*]}"
    exit 1
fi
echo "make test: all passed"
