# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""JAX's arrays, on the CPU, where it is installed: bytes, devices, shards."""

import pytest

from frameworks_case import MIB, expect, expect_nothing, run_jax


def test_jax_arrays_have_bytes_device_and_stack():
    result = run_jax("""
start()
cycle(jnp.zeros((3, 1024, 1024), jnp.int8))
cycle(jnp.zeros((2, 1024, 1024), jnp.bfloat16))
finish()
""")
    expect(result, [
        ["ArrayImpl [3, 1024, 1024] int8 cpu 3.0 MiB", "cpu", 3 * MIB, True],
        ["ArrayImpl [2, 1024, 1024] bfloat16 cpu 4.0 MiB", "cpu", 4 * MIB, True],
    ], 7 * MIB)
    assert "struct layout" in result["frameworks"]["jax"]


def test_jax_backend_is_never_initialised_by_us():
    result = run_jax("""
start()
cumem.find_cycles()
bridge = sys.modules["jax._src.xla_bridge"]
finish(backends=len(bridge._backends))
""")
    assert result["backends"] == 0
    assert result["frameworks"]["jax"] == "no backend yet"


def test_jax_arrays_without_memory_count_as_nothing():
    result = run_jax("""
from jax._src.array import ArrayImpl
gone = jnp.zeros((4, 1024, 1024))
gone.delete()
start()
cycle(gone)
cycle(ArrayImpl.__new__(ArrayImpl))
cycle(jnp.zeros((0, 5)))
del gone
finish()
""")
    expect_nothing(result)


def test_jax_scalars_and_many_dimensions_are_read():
    result = run_jax("""
start()
cycle(jnp.float32(3))
cycle(jnp.zeros((1,) * 20 + (7,), jnp.int16))
finish()
""")
    assert sorted(row[2] for row in result["scan"]["rows"]) == [4, 14]


FOUR = """
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from cumem import _jax
finish_jax = finish
def finish(**more):
    finish_jax(kind=jax.devices()[0].default_memory().kind, **more)
_jax._name = lambda kind, device: f"cuda:{device.id}" # as four GPUs are named
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))

def put(*spec, over=mesh, shape=(8, 1024), dtype=np.float32):
    return jax.device_put(np.zeros(shape, dtype), NamedSharding(over, P(*spec)))

def shards(make):
    made.append(1)
    reports.clear()
    make()
    scan = sorted((s["device"], s["bytes"], bool(s["site"]))
                  for s in cumem.find_cycles().report["storages"])
    gc.collect()
    found = [sorted((s["device"], s["bytes"], bool(s["site"]))
                    for s in report.report["storages"]) for report in reports]
    assert found == [scan] or not scan and not found, (found, scan)
    return scan
"""


def run_four(code):
    result = run_jax(
        FOUR + code, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    if result["kind"] == "unpinned_host":
        pytest.skip("this JAX calls the memory of CPU devices the host's")
    return result


@pytest.mark.parametrize("spec, least", [
    (("a", "b"), 8), (("a",), 16), ((None, "b"), 16), ((("a", "b"),), 8),
    ((), 32)], ids=str)
def test_jax_arrays_over_several_devices_have_a_shard_on_each(spec, least):
    result = run_four(f"""
start()
found = shards(lambda: cycle(put(*{spec!r})))
finish(found=found)
""")
    assert result["found"] == [[f"cuda:{i}", least << 10, True]
                               for i in range(4)]
    assert result["frameworks"]["jax"] == "struct layout"


def test_jax_shards_are_where_the_mesh_says():
    result = run_four("""
start()
turned = Mesh(np.array(jax.devices())[[3, 1]], ("x",))
found = shards(lambda: cycle(put("x", over=turned)))
page = cumem.find_cycles
cycle(put("a", "b"))
one = [(s["device"], s["bytes"])
       for s in cumem.find_cycles(devices="cuda:2").report["storages"]]
labels = sorted(v["annotation"] for v in cumem.find_cycles().report["vertices"]
                if "cuda" in v["annotation"])
totals = [c["total_bytes"] for c in cumem.find_cycles().report["cycles"]]
finish(found=found, one=one, labels=labels, totals=totals)
""")
    assert [row[:2] for row in result["found"]] == [
        ["cuda:1", 16 << 10], ["cuda:3", 16 << 10]]
    assert result["one"] == [["cuda:2", 8 << 10]]
    assert result["labels"] == [
        "ArrayImpl [8, 1024] float32 cuda:0 8.0 KiB",
        "shard cuda:1 8.0 KiB", "shard cuda:2 8.0 KiB", "shard cuda:3 8.0 KiB"]
    assert result["totals"] == [32 << 10]


def test_jax_array_over_several_devices_is_one_line_of_a_way():
    result = run_four("""
start()
kept = [put("a", "b")]
finish(way=str(cumem.why_alive(kept[0])[0]))
""")
    assert result["way"].endswith(
        "ArrayImpl [8, 1024] float32 4 devices 32 KiB"), result["way"]


def test_jax_shards_are_read_again_after_remove():
    result = run_four("""
start()
first = shards(lambda: cycle(put("a", "b")))
handle.remove()
handle = cumem.observe_tensor_cycles(reports.append)
start()
finish(first=first, again=shards(lambda: cycle(put("a", "b"))))
""")
    assert result["first"] == result["again"] == [[f"cuda:{i}", 8 << 10, True] for i in range(4)]


def test_jax_buffers_that_arrays_share_are_one_memory():
    result = run_four("""
def touched():
    array = put("a", "b")
    cycle([array, [shard.data for shard in array.addressable_shards]])
def assembled():
    one = jax.device_put(np.zeros(1024, np.int8), jax.devices()[2])
    same = type(one)(one.aval, one.sharding, [one], True)
    cycle([one, same])
start()
finish(touched=shards(touched), assembled=shards(assembled))
""")
    assert [row[:2] for row in result["touched"]] == [
        [f"cuda:{i}", 8 << 10] for i in range(4)]
    assert [row[:2] for row in result["assembled"]] == [["cuda:2", 1024]]


def test_jax_buffers_that_were_donated_hold_nothing():
    result = run_four("""
twice = jax.jit(lambda x: x * 2, donate_argnums=0)
def donated():
    for array in (put("a", "b"), jax.device_put(np.zeros(1024), jax.devices()[1])):
        cycle(array)
        gone.append(weakref.ref(array))
        results.append(twice(array))
        assert array.is_deleted()
def deleted():
    array = put("a")
    cycle(array)
    array.delete()
gone, results = [], []
twice(put("a", "b")); twice(jax.device_put(np.zeros(1024), jax.devices()[1]))
start()
finish(donated=shards(donated), deleted=shards(deleted),
       result=shards(lambda: cycle(twice(put("a", "b")))))
""")
    assert result["donated"] == result["deleted"] == []
    assert [row[1] for row in result["result"]] == [8 << 10] * 4


def test_jax_shardings_that_are_not_known_count_as_nothing():
    """A mesh that was changed, or whose names are no texts: nothing is asked."""
    result = run_four("""
class Name:
    def __eq__(self, other): return calls.append("eq") or NotImplemented
    def __hash__(self): return 1
calls, name = [], Name()
other = Mesh(np.array(jax.devices()).reshape(2, 2), (name, "b"))
arrays = [put("a"), put(name, over=other)]
start()
cycle(arrays[1])
odd = Mesh(np.array(jax.devices()), ("odd",))
array = put("odd", over=odd)
vars(odd)["devices"] = [1, 2, 3, 4]
cycle(array)
odd = Mesh(np.array(jax.devices()), ("odd two",))
array = put("odd two", over=odd)
vars(odd)["axis_names"] = ()
cycle(array)
del array, arrays, odd
calls.clear()
found = sorted((s["device"], s["bytes"]) for s in cumem.find_cycles().report["storages"])
finish(found=found, calls=calls)
""")
    assert result["calls"] == []
    assert result["found"] == [[f"cuda:{i}", 16 << 10] for i in range(4)]


def test_jax_probe_leaves_no_mesh_of_devices_behind():
    result = run_jax("""
keep = jnp.zeros((3, 4))
start()
from jax.sharding import Mesh
left = [mesh.axis_names for mesh in gc.get_objects() if isinstance(mesh, Mesh)]
finish(left=left)
""")
    assert "struct layout" == result["frameworks"]["jax"]
    assert ["cumem"] not in result["left"]


def test_jax_sharding_over_the_only_device_is_counted():
    result = run_jax("""
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
mesh = Mesh(np.array(jax.devices()), ("a",))
start()
cycle(jax.device_put(np.zeros((8, 1024), np.float32),
                     NamedSharding(mesh, PartitionSpec("a"))))
finish()
""")
    assert [row[2] for row in result["scan"]["rows"]] == [32768]


def test_jax_layout_is_found_without_a_cpu_backend():
    """The user's own arrays are looked at instead; none is made."""
    result = run_jax("""
from cumem import _jax
_jax._make = None
_jax._arrays_ = _jax._arrays
def arrays(backends):
    return _jax._arrays_({"other": backends["cpu"]})
_jax._arrays = arrays
keep = [jnp.zeros((3, 4)), jnp.zeros((5, 6, 7), jnp.int8), jnp.zeros((9,), jnp.int16)]
start()
cycle(jnp.zeros((3, 1024, 1024), jnp.int8))
gone = jnp.zeros((4, 1024, 1024))
gone.delete()
cycle(gone)
del gone
finish()
""")
    assert [row[2] for row in result["scan"]["rows"]] == [3 * MIB]


def test_jax_arrays_are_no_accelerators_before_their_layout_is_known():
    """They offer the CUDA array interface, and lie on the CPU."""
    result = run_jax("""
from cumem import _jax
_jax._learn_ = _jax._learn
_jax._learn = lambda *_: None
cycle(jnp.zeros((5, 1024, 1024), jnp.int8))
start()
_jax._learn = _jax._learn_
cycle(jnp.zeros((3, 1024, 1024), jnp.int8))
finish(accelerator=cumem.status()["accelerator"])
""")
    expect(result, [["ArrayImpl [3, 1024, 1024] int8 cpu 3.0 MiB", "cpu", 3 * MIB, True]], 3 * MIB)
    assert result["accelerator"] is False
