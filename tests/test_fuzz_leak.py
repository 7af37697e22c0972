# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Documents changed at random: cyclereport reads or refuses, never crashes.

CUMEM_CYCLEREPORT may name a sanitized build; CUMEM_FUZZ_EXAMPLES the number of
examples (60 unless told).
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings, strategies as st  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import growth_leaks  # noqa: E402
import leak_file  # noqa: E402
import memory_leaks  # noqa: E402
from leak_file import MIB  # noqa: E402

EXAMPLES = int(os.environ.get("CUMEM_FUZZ_EXAMPLES", "60"))
SETTINGS = settings(max_examples=EXAMPLES, deadline=None,
                    suppress_health_check=list(HealthCheck))

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 20),
    st.integers(-2**70, 2**70), st.floats(), st.text(max_size=20),
    st.sampled_from(["0x1", "cell x", "__dict__", ".a", "[0]", "container",
                     "tensor", "back_link", "resurrected", "\x1b[2J"]),
    st.lists(st.integers(0, 9), max_size=5),
    st.dictionaries(st.sampled_from(["id", "frames", "tail"]),
                    st.integers(0, 9), max_size=3))


def places(value, path=()):
    """Every place of a document, as a path of keys."""
    yield path
    if isinstance(value, (dict, list)):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from places(value[key], path + (key,))


def example():
    """One finding, and a device that ran out of memory."""
    document = leak_file.example()
    document["devices"][0].update(memory_leaks.use(),
                                  iterations=memory_leaks.iterations(3))
    document["held"] = [
        {"device": "cuda:0", "framework": framework, "site": 1,
         "awaited": True, "bytes": MIB, "count": 2, "library": "libnccl.so.2"}
        for framework in ("torch", "driver")]
    document["storages"][0].update(thread=7, awaited=True, pool="(0, 1)")
    grown = growth_leaks.job(12).data
    document["growth"] = [dict(row, site=1) for row in grown["growth"]]
    document["timeline"] = grown["timeline"]
    document["collector"] = grown["collector"]
    document["looks"] = grown["looks"]
    document["exhausted"] = {
        "iteration": 7, "error": "RuntimeError", "device": "cuda:0", "asked_bytes": MIB,
        "holders": [{"way": "`a.kept` (list, 3 items)", "bytes": MIB}]}
    document["collections"] = grown["collections"][:3]
    return document


PLACES = list(places(example()))[1:]


def changed(changes):
    document = example()
    for path, action, value in changes:
        at = document
        try:
            for key in path[:-1]:
                at = at[key]
            if action == "drop":
                del at[path[-1]]
            elif action == "double" and isinstance(at, list):
                at.append(at[path[-1]])
            else:
                at[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            pass  # an earlier change took the place away
    return document


def check(bytes_, *options):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [leak_file.program(), "-", "--format=text", "--all",
             "--all-frames", *options], input=bytes_, cwd=folder,
            capture_output=True, timeout=60)
        assert os.listdir(folder) == []
    assert done.returncode in (0, 2), done.stderr.decode(errors="replace")
    if done.returncode == 2:
        assert done.stdout == b""
        assert done.stderr.startswith(b"cyclereport: standard input: ")
        assert done.stderr.count(b"\n") == 1
    else:
        assert done.stderr == b""
        done.stdout.decode()
        assert not set(done.stdout) & (set(range(32)) - {10} | {127})
    return done.returncode


def check_page(bytes_):
    """A page, or one line that says why not."""
    done = subprocess.run([leak_file.program(), "-", "--format=html"],
                          input=bytes_, capture_output=True, timeout=60)
    assert done.returncode in (0, 2), done.stderr.decode(errors="replace")
    if done.returncode == 0:
        assert done.stderr == b""
        assert done.stdout.decode().endswith("</body></html>\n")
    else:
        assert done.stdout == b"" and done.stderr.count(b"\n") == 1


@SETTINGS
@given(st.lists(st.tuples(st.sampled_from(PLACES),
                          st.sampled_from(["set", "drop", "double"]), VALUES),
                max_size=6))
def test_changed_values(changes):
    check(json.dumps(changed(changes)).encode())


@SETTINGS
@given(st.lists(st.tuples(st.integers(0, 10**6),
                          st.binary(min_size=1, max_size=4)),
                min_size=1, max_size=8), st.integers(0, 10**6))
def test_changed_bytes(changes, end):
    bytes_ = bytearray(json.dumps(example()).encode())
    for at, new in changes:
        at %= len(bytes_)
        bytes_[at:at + len(new)] = new
    check(bytes(bytes_[:end]))


@SETTINGS
@given(st.lists(st.tuples(st.sampled_from(PLACES),
                          st.sampled_from(["set", "drop", "double"]), VALUES),
                max_size=4))
def test_changed_values_as_a_page(changes):
    check_page(json.dumps(changed(changes)).encode())


def graphs():
    """Small graphs of any shape, with any component, cut and payload."""
    number = st.integers(1, 6)
    return st.tuples(
        st.lists(st.tuples(number, number), max_size=12),
        st.lists(number, max_size=6), st.lists(st.integers(1, 12), max_size=3),
        st.lists(st.sampled_from(["object", "container", "tensor", "cell",
                                  "frame", "function"]), min_size=6,
                 max_size=6),
        st.sampled_from(["back_link", "lambda_on_self", "container_cycle",
                         "generator_holds_itself", "frame_in_local", ""]))


@SETTINGS
@given(graphs())
def test_any_graph(graph):
    edges, component, cut, kinds, rule = graph
    document = leak_file.example()
    document["vertices"] = [
        leak_file.vertex(i + 1, f"m.N{i}", f"m.N{i}", kind)
        for i, kind in enumerate(kinds)]
    document["edges"] = [leak_file.edge(i + 1, f".e{i}", tail, head)
                         for i, (tail, head) in enumerate(edges)]
    document["storages"][0]["vertices"] = [1 + len(edges) % 6]
    document["cycles"] = document["cycles"][:1]
    document["cycles"][0].update(
        vertices=component, cut=[c for c in cut if c <= len(edges)],
        rule=rule)
    assert check(json.dumps(document).encode()) == 0
