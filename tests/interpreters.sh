#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# cumem on every CPython of this machine.
#
#   tests/interpreters.sh list          prints each interpreter, one a line
#   tests/interpreters.sh status        builds and installs cumem for each,
#                                       says which interceptor serves; fails
#                                       where a GIL build uses the fallback
#   tests/interpreters.sh test          status, then for each the tests that
#                                       look at CPython and need no torch
#   tests/interpreters.sh fetch FOLDER  as root: a tree of Debian unstable
#                                       with 3.13, 3.14 and 3.15 in FOLDER
#   tests/interpreters.sh mount FOLDER  as root: this checkout and /tmp stand
#                                       in FOLDER where they stand here
#
# Interpreters: the one of the system, python3.11 to python3.15 in PATH and in
# ~/.pyenv/versions, the newest patch release of each; those of the trees that
# CUMEM_TREES names (folders, separated by colons).  VERSIONS="3.12 3.14"
# takes only those; TESTED names one in which cumem is installed and whose tests
# have passed already: its status alone is asked.  Environments are kept in BUILD
# (build/interpreters).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-$PWD/build/interpreters}
versions=${VERSIONS:-3.11 3.12 3.13 3.14 3.15}

# full_version PYTHON MINOR: "3.12.1", nothing for another minor or a
# free-threaded build.
full_version() {
    "$1" -c 'import sys, sysconfig
if not sysconfig.get_config_var("Py_GIL_DISABLED") \
        and "%d.%d" % sys.version_info[:2] == sys.argv[1] \
        and sys.implementation.name == "cpython":
    print("%d.%d.%d" % sys.version_info[:3])' "$2" 2>/dev/null || true
}

list() {
    local minor python found
    for minor in $versions; do
        for python in "/usr/bin/python$minor" "/usr/local/bin/python$minor" \
            "$(command -v "python$minor" || true)" \
            "$HOME/.pyenv/versions/$minor".*/bin/python3; do
            [ -x "$python" ] || continue
            found=$(full_version "$python" "$minor")
            [ -z "$found" ] || echo "$found $python"
        done | sort -V | tail -n 1 | cut -d' ' -f2
    done
}

# make_environment PYTHON FOLDER: with cumem built for it.
make_environment() {
    [ -x "$2/bin/python" ] || "$1" -m venv "$2"
    "$2/bin/python" -m pip install -q pytest pytest-xdist hypothesis jsonschema
    # Speaks of its stacks where there is a build of it for this version.
    "$2/bin/python" -m pip install -q --only-binary :all: greenlet || true
    "$2/bin/python" -m pip install -q --force-reinstall --no-deps .
}

# Of a process that observes: the sentinel serves and read each collection's
# list, and every struct layout was proved.
show_status() {
    "$1/bin/python" - <<'PY'
import gc, sys
import cumem
with cumem.observe_tensor_cycles(print):
    gc.collect()
    status = cumem.status()
print("python", sys.version.split()[0], status["interceptor"],
      status["layouts"], "walks", status["seen"]["walks"])
code = status["layouts"].pop("code")
if (status["interceptor"] != "sentinel"
        or set(status["layouts"].values()) != {"struct layout"}
        or not code.startswith("by address")
        or status["seen"]["walks"] < 1 or status["lost"]["bad_walks"]):
    sys.exit("a fallback serves on a GIL build: %r" % (status,))
PY
}

# Is it the one that TESTED is, or was made from?
is_tested() {
    [ -n "${TESTED:-}" ] || return 1
    local base='import sys; print(sys.base_prefix, sys.version)'
    [ "$("$TESTED" -c "$base")" = "$("$1" -c "$base")" ]
}

# check_one PYTHON status|test
check_one() {
    echo "== $1"
    if is_tested "$1"; then
        show_status "$(dirname "$(dirname "$TESTED")")"
        return
    fi
    local folder
    folder=$build/$("$1" -c 'import platform
print(platform.python_version())')
    make_environment "$1" "$folder" && show_status "$folder" || return 1
    [ "$2" = status ] || CUMEM_TEST_PYTHONS=$folder/bin/python \
        "$folder/bin/python" -m pytest -q -p no:cacheprovider -n 2 --dist loadfile \
            tests/test_start_files.py tests/test_interceptors.py \
            tests/test_conformance.py tests/test_object_*.py \
            tests/test_why_alive.py
}

# For every interpreter here, then in every tree; all run, also after one
# failed.
each() {
    local python failed=0
    for python in $(list); do
        check_one "$python" "$1" || failed=1
    done
    in_trees "$1" || failed=1
    return $failed
}

in_trees() {
    local tree failed=0
    for tree in $(echo "${CUMEM_TREES:-}" | tr : ' '); do
        echo "== $tree"
        chroot "$tree" /usr/bin/env -u CUMEM_TREES -C "$PWD" \
            HOME=/root PATH=/usr/bin:/bin VERSIONS="$versions" \
            BUILD="$build/$(basename "$tree")" tests/interpreters.sh "$1" \
            || failed=1
    done
    return $failed
}

fetch() {
    debootstrap --variant=minbase --include="ca-certificates,git,gcc,g++,\
cmake,ninja-build,pkg-config,libcjson-dev,graphviz,\
libgvplugin-neato-layout8,libgraphviz-dev,\
python3.13-dev,python3.13-venv,python3.14-dev,python3.14-venv,\
python3.15-dev,python3.15-venv" sid "$1"
    mount_into "$1"
}

mount_into() {
    local folder
    for folder in "$PWD" /tmp /proc /dev /dev/pts; do
        mkdir -p "$1$folder"
        mountpoint -q "$1$folder" || mount --bind "$folder" "$1$folder"
    done
    cp /etc/resolv.conf "$1/etc/resolv.conf"
}

case ${1:-} in
list) list; in_trees list ;;
status | test) each "$1" ;;
fetch) fetch "${2:?a folder}" ;;
mount) mount_into "${2:?a folder}" ;;
*) sed -n '5,23p' "$0" | cut -c3-; exit 2 ;;
esac
