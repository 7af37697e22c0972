#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# tools/setup.sh demo|test: system packages (installed by apt where we are
# root, else named in one line), a virtual environment in .venv with torch,
# and cumem itself.  PYTHON picks the interpreter, TORCH what pip installs.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:?demo or test}

say() { echo "cumem: $*" >&2; }

# A GIL build of 3.11 to 3.15.
serves() {
    "$1" -c 'import sys, sysconfig
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 15)
         or bool(sysconfig.get_config_var("Py_GIL_DISABLED")))' 2>/dev/null
}

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 \
                          python3.14 python3.15}; do
        if serves "$name"; then
            command -v "$name"
            return
        fi
    done
}

# The newest name that this system's packages have, when there is no Python.
python_package() {
    local version
    for version in 3.13 3.12 3.11 3.14 3.15; do
        if apt-cache show "python$version-venv" >/dev/null 2>&1; then
            echo "python$version"
            return
        fi
    done
    echo python3
}

# Prints the Debian names of what is missing.
missing_packages() {
    local python package
    command -v cc >/dev/null && command -v c++ >/dev/null \
        && command -v make >/dev/null || echo build-essential
    command -v cmake >/dev/null || echo cmake
    command -v ninja >/dev/null || echo ninja-build
    # Besides programs, what tells libgvc where its layouts are; newer
    # releases have sfdp's in a package of its own.
    echo 'graph { a -- b }' | sfdp -Tdot >/dev/null 2>&1 \
        || echo graphviz $(apt-cache pkgnames libgvplugin-neato-layout \
            2>/dev/null | grep -v -e -dev)
    if command -v pkg-config >/dev/null; then
        pkg-config --exists libcjson || echo libcjson-dev
        pkg-config --exists libgvc || echo libgraphviz-dev
        [ "$purpose" = demo ] || pkg-config --exists cmocka \
            || echo libcmocka-dev
    else
        echo pkg-config libcjson-dev libgraphviz-dev
        [ "$purpose" = demo ] || echo libcmocka-dev
    fi
    if [ "$purpose" = test ]; then
        command -v clang-tidy >/dev/null || echo clang-tidy
        command -v prove >/dev/null || echo perl
        command -v xmllint >/dev/null || echo libxml2-utils
    fi
    python=$(find_python)
    if [ -z "$python" ]; then
        package=$(python_package)
        echo "$package" "$package-dev" "$package-venv"
        [ "$purpose" = demo ] || echo "lib$package-testsuite"
        return
    fi
    package=$("$python" -c \
        'import sys; print("python%d.%d" % sys.version_info[:2])')
    "$python" -c 'import os, sysconfig
open(os.path.join(sysconfig.get_path("include"), "Python.h"))' \
        2>/dev/null || echo "$package-dev"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo "$package-venv"
    # Debian has CPython's own tests apart.
    if [ "$purpose" = test ] && [[ $python == /usr/bin/* ]]; then
        "$python" -c 'import importlib.util, sys
sys.exit(importlib.util.find_spec("test.test_gc") is None)' 2>/dev/null \
            || echo "lib$package-testsuite"
    fi
}

install_packages() {
    local missing
    missing=$(missing_packages | xargs)
    [ -n "$missing" ] || return 0
    local command="apt-get install -y --no-install-recommends $missing"
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "packages are missing; as root: $command"
        exit 1
    fi
    say "$command"
    export DEBIAN_FRONTEND=noninteractive
    # Once more after the lists are new: then the right names are known.
    apt-get update -q >/dev/null
    missing=$(missing_packages | xargs)
    # shellcheck disable=SC2086
    apt-get install -y -q --no-install-recommends $missing >/dev/null
    missing=$(missing_packages | xargs)
    if [ -n "$missing" ]; then
        say "still missing after apt-get: $missing"
        exit 1
    fi
}

# Debian's own, or the one that Playwright brings.
install_browser() {
    command -v chromium >/dev/null && return
    if [ "$(id -u)" = 0 ] && . /etc/os-release && [ "$ID" = debian ]; then
        apt-get install -y -q --no-install-recommends chromium >/dev/null
    elif [ "$(id -u)" = 0 ]; then
        .venv/bin/playwright install --with-deps chromium >/dev/null
    else
        .venv/bin/playwright install chromium >/dev/null
    fi
}

make_environment() {
    local python torch
    python=$(find_python)
    if ! { [ -x .venv/bin/python ] && serves .venv/bin/python; }; then
        say "making .venv with $("$python" -V)"
        "$python" -m venv --clear .venv
    fi
    # The version that the samples' golden files were checked with, where
    # the interpreter can have it; else the newest.
    torch=torch
    [[ $(.venv/bin/python -V) != *" 3.11."* ]] || torch=torch==2.13.0
    say "installing ${TORCH:-$torch}, building and installing cumem"
    # shellcheck disable=SC2086
    .venv/bin/pip install -q --no-warn-script-location \
        ${TORCH:-$torch} numpy $([ "$purpose" = demo ] \
            || echo clang-format==14.0.6)
    # A folder is built and installed anew, whatever version is there.
    if [ "$purpose" = demo ]; then
        .venv/bin/pip install -q .
    else
        .venv/bin/pip install -q ".[test]"
    fi
}

install_packages
make_environment
[ "$purpose" = demo ] || install_browser
