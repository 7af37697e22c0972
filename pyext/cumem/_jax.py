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
    _core.describe({"jax": str(sys.modules["jax"].__version__)})
    return True


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
