# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Where jaxlib keeps what we need of an array: found from arrays whose facts are known.

Called by the core once the user has imported JAX and a backend is there; never
imports JAX and never initialises a backend.  The arrays are made on the CPU, by
the call that does no tracing; without a CPU backend the user's own are looked at.
"""

import sys

from . import _core

_SHAPES = ((3, 5, 7), (11, 2, 13), (17, 19))
_HOST = ("cpu",)
_MOST_FAILURES = 20
_failures = []  # a transfer guard may forbid us to make arrays for a while


def probe():
    """Teach the core the layout.

    Returns True when it is learnt, None to be asked again later, else what was
    not found.
    """
    if getattr(sys.modules["jax"].__spec__, "_initializing", False):
        return None
    bridge = sys.modules.get("jax._src.xla_bridge")
    backends = dict(getattr(bridge, "_backends", None) or {})
    if not backends or getattr(bridge, "_default_backend", True) is None:
        return None
    try:
        arrays, gone = _arrays(backends)
        if len(arrays) < 2:
            return None
        return _learn(arrays, gone, backends)
    except Exception as error:
        _core.let_through()
        _failures.append(f"{type(error).__name__}: {error}"[:100])
        return _failures[-1] if len(_failures) > _MOST_FAILURES else None


def _arrays(backends):
    """Arrays to look at, and one that was deleted (or None)."""
    if "cpu" in backends:
        arrays = _make(backends["cpu"].local_devices()[0])
        arrays[-1].delete()
        return arrays[:-1], arrays[-1]
    found = {}
    for client in backends.values():
        for array in client.live_arrays():
            if _is_plain(array):
                found.setdefault(array.shape, array)
            if len(found) == 4:
                break
    return list(found.values()), None


def _is_plain(array):
    return (
        not array.is_deleted() and len(array.shape) >= 1 and 0 not in array.shape
        and hasattr(array.sharding, "_device")
    )  # fmt: skip


def _make(device):
    numpy = sys.modules["numpy"]
    jaxlib = sys.modules.get("jaxlib._jax") or sys.modules["jaxlib.xla_extension"]
    aval = sys.modules["jax._src.core"].ShapedArray
    sharding = sys.modules["jax._src.sharding_impls"].SingleDeviceSharding(device)
    arrays = []
    for shape, dtype in zip(_SHAPES, ("float32", "int8", "int32")):
        value = numpy.zeros(shape, dtype)
        array = jaxlib.batched_device_put(
            aval(shape, value.dtype), sharding, [value], [device], True
        )
        arrays.append(array)
    return arrays


def _learn(arrays, gone, backends):
    numpy = sys.modules["numpy"]
    words = [_core.jax_probe("words", array) for array in arrays]
    if any(each is None for each in words):
        return "the arrays cannot be looked at"
    shardings = [array.sharding for array in arrays]
    inside = [_core.jax_probe("words", sharding) for sharding in shardings]
    found = {
        "sizes": _find_sizes(arrays, words),
        "dtype": _find(words, [id(array.dtype) for array in arrays]),
        "sharding": _find(words, [id(sharding) for sharding in shardings]),
        "client": _find(words, [id(_device(sharding).client) for sharding in shardings]),
        "buffers": _find_buffers(arrays, words, gone),
        "device": _find(inside, [id(_device(sharding)) for sharding in shardings]),
        "memory kind": _find(inside, [id(sharding.memory_kind) for sharding in shardings]),
    }
    missing = [name for name, offset in found.items() if offset is None]
    if missing:
        return "not found in ArrayImpl: " + ", ".join(missing)
    _core.jax_probe(
        "layout",
        (type(arrays[0]), type(shardings[0]), numpy.dtype, *found.values(), _places(backends)),
    )
    _learn_deleted(arrays[0], gone)
    _learn_shards(arrays, words, found["buffers"])
    _core.describe({"jax": str(sys.modules["jax"].__version__)})
    return True


def _learn_deleted(array, gone):
    """jaxlib's own method, where it is no Python and tells the two apart."""
    method = vars(type(array)).get("is_deleted")
    if type(method).__name__ == "nb_method" and method(array) is False:
        if gone is None or method(gone) is True:
            _core.jax_probe("is_deleted", method)


def _learn_shards(arrays, words, buffers):
    """How arrays over several devices lie; nothing where anything is not as known."""
    try:
        vector = _find_vector(arrays, [each[buffers // 8] for each in words])
        if vector is not None:
            _core.jax_probe("shards", (*_named_sharding(_device(arrays[0].sharding)), vector))
    except Exception:  # another version: such arrays count as nothing, and status() says so
        _core.let_through()


def _find_vector(arrays, holders):
    """(first word, offset) of absl's vector of std::shared_ptr in what holds the buffers.

    One buffer: the vector says 2, then come its two pointers, which an array made
    of the first one shares with it and with no other.
    """
    first = arrays[0]
    same = type(first)(first.aval, first.sharding, [first], True, _skip_checks=True)
    at_same = _core.jax_probe("words", same)
    at_first = _core.jax_probe("words", first)
    place = at_first.index(holders[0])
    ours = [_core.jax_probe("peek", each, 24) for each in (holders[0], at_same[place])]
    others = [_core.jax_probe("peek", each, 24) for each in holders[1:]]
    if at_same[place] == holders[0] or None in ours + others or ours[0][0] != ours[1][0]:
        return None
    for at in range(2, 21):
        pairs = [each[at + 1 : at + 3] for each in ours]
        if (all(each[at] == 2 for each in ours + others) and pairs[0] == pairs[1]
                and min(pairs[0]) > 4096 and pairs[0][0] % 8 == 0
                and all(each[at + 1] != pairs[0][0] for each in others)):  # fmt: skip
            return ours[0][0], at * 8
    return None


def _named_sharding(device):
    """Types and offsets, from one over a mesh that holds no device: JAX caches it."""
    numpy = sys.modules["numpy"]
    meshes = sys.modules["jax._src.mesh"]
    shardings = sys.modules["jax._src.sharding_impls"]
    mesh = meshes.AbstractMesh((1,), ("cumem",))
    spec = shardings.PartitionSpec("cumem", None)
    sharding = shardings.NamedSharding(mesh, spec, memory_kind="device")
    inside = [_core.jax_probe("words", sharding)]
    held = (id(sharding.mesh), id(sharding.spec), id(sharding.memory_kind))
    offsets = [_find(inside, [each]) for each in held]
    offsets.append(_find([_core.jax_probe("words", spec)], [id(spec._partitions)]))
    devices = numpy.array([device])
    if None in offsets or not _numpy_lies_so(devices, device):
        raise LookupError
    return (type(sharding), meshes.Mesh, type(spec), type(devices), *offsets)


def _numpy_lies_so(devices, device):
    words = _core.jax_probe("words", devices)
    return (
        words[2] == devices.__array_interface__["data"][0]
        and words[3] & 0xFFFFFFFF == devices.ndim
        and _core.jax_probe("peek", words[4], 1) == devices.shape
        and words[8] & 0xFFFFFFFF == devices.flags.num and devices.flags.c_contiguous
        and _core.jax_probe("peek", words[2], 1) == (id(device),)
    )  # fmt: skip


def _device(sharding):
    return sharding._device


def _find(words, values):
    """Offset of the first word that has its value in every object."""
    for at in range(2, min(map(len, words))):
        if all(each[at] == value for each, value in zip(words, values)):
            return at * 8
    return None


def _find_sizes(arrays, words):
    """A std::vector of the sizes: two pointers, and behind the first the sizes."""
    for at in range(2, min(map(len, words)) - 1):
        if all(_are_sizes(each[at], each[at + 1], array.shape)
               for each, array in zip(words, arrays)):  # fmt: skip
            return at * 8
    return None


def _are_sizes(first, end, shape):
    if first == 0 or first % 8 != 0 or end - first != 8 * len(shape):
        return False
    return _core.jax_probe("peek", first, len(shape)) == tuple(shape)


def _find_buffers(arrays, words, gone):
    """The pointer that differs between arrays, and is NULL in one that was deleted."""
    after = max(_find(words, [id(array.sharding) for array in arrays]) or 0, 8)
    known = {id(array._npy_value) for array in arrays}
    none = _core.jax_probe("words", gone) if gone is not None else None
    for at in range(after // 8 + 1, min(map(len, words))):
        values = [each[at] for each in words]
        if (0 in values or len(set(values)) < len(values) or known & set(values)
                or any(value % 8 or value < 4096 for value in values)):  # fmt: skip
            continue
        if none is None or none[at] == 0:
            return at * 8
    return None


def _places(backends):
    """(address, name) of each local device, and of each client: "" when it has several."""
    places = {}
    for kind, client in backends.items():
        devices = client.local_devices()
        if kind == "gpu":  # its name in older versions
            kind = "rocm" if "rocm" in client.platform_version.lower() else "cuda"
        names = [_name(kind, device) for device in devices]
        places.update(zip(map(id, devices), names))
        places[id(client)] = names[0] if len(devices) == 1 == client.device_count() else ""
    return list(places.items())


def _name(kind, device):
    if kind in _HOST:
        return "cpu"
    index = getattr(device, "local_hardware_id", None)
    return f"{kind}:{device.id if index is None else index}"[:15]
