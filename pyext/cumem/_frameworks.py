# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The frameworks that the user has imported: their classes, and the bytes they hold.

Nothing is imported, no device is initialised and no context is made: a framework
that has not been used yet is left out.
"""

import os
import sys

from . import _core

# Classes that the readers tag (pyext/*_reader.c): the first that is there.
_TAGGED = (
    ("cupy._core.core", ("ndarray",)),
    ("numba.cuda.cudadrv.devicearray", ("DeviceNDArray", "DeviceRecord", "ManagedNDArray")),
    ("jaxlib._jax", ("ArrayImpl",)),
    ("jaxlib.xla_extension", ("ArrayImpl",)),
    ("rmm.pylibrmm.device_buffer", ("DeviceBuffer",)),
    ("cuda.core._memory._buffer", ("Buffer",)),
)


def tagged_types():
    """Every class whose objects the core may have tagged, torch's aside."""
    found = []
    for module, names in _TAGGED:
        for name in names:
            cls = getattr(sys.modules.get(module), name, None)
            if isinstance(cls, type) and cls not in found:
                found.append(cls)
    return found


def use(index):
    """Bytes on CUDA device `index`: {"torch": (allocated, reserved), ...}.

    Only frameworks that are in use on that device are there.  Numba and cuda.core
    keep no such count, nor do others for what their own pools do not give out: there
    it is what their objects hold, which is known while cumem observes.  What a
    framework cannot say, or raises about, is left out.
    """
    found = _counted(index)
    for name, held in _core.objects_use(index).items():
        if name == "rmm" or "rmm" not in found or f"rmm.allocators.{name}" not in sys.modules:
            found[name] = _at_least(held, *found.get(name, (0, 0)))
    return found


def _counted(index):
    found = {}
    for name, _, ask in _ASKED:
        try:
            bytes_held = ask(index)
        except Exception:
            _core.let_through()
            continue
        if bytes_held is not None:
            allocated, reserved = bytes_held
            found[name] = (int(allocated), max(int(allocated), int(reserved)))
    return found


def pool_libraries(indices):
    """How the names of those libraries begin whose pools are counted on these devices."""
    counted = {name for index in indices for name, (_, reserved) in _counted(index).items() if reserved}
    return [library for name in sorted(counted) for library in _LIBRARIES[name]]


def _at_least(held, allocated, reserved):
    """What a framework has counted, which is not all where its objects hold more."""
    if not reserved:
        return held
    allocated = max(allocated, held[0])
    return allocated, max(reserved, allocated)


def torch_cuda():
    """``torch.cuda`` once it is initialized; else None."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def torch_stats(index):
    """torch's counters of a device, as ``memory_stats_as_nested_dict()`` has them.

    Flattened, as by ``memory_stats()``, they take 0.1 ms.  Empty: torch holds nothing there.
    """
    cuda = torch_cuda()
    if cuda is None or index >= cuda.device_count():
        return {}
    try:
        return cuda.memory_stats_as_nested_dict(index)
    except RuntimeError:  # another allocator: it does not count
        _core.let_through()
        return {}


def torch_bytes(stats, kind, when="current"):
    """0 where torch does not say."""
    return stats.get(f"{kind}_bytes", {}).get("all", {}).get(when, 0)


def _torch(index):
    # Zeros or nothing: torch has not allocated there, and is not made to.  What was
    # all given back since has a past, of which the program may reset a part.
    stats = torch_stats(index)
    if not any(torch_bytes(stats, "reserved", when) for when in ("current", "peak", "allocated")):
        return None
    return torch_bytes(stats, "allocated"), torch_bytes(stats, "reserved")


def _cupy(index):
    """CuPy's pool of another device is reached by making that device current only."""
    cupy = sys.modules.get("cupy")
    runtime = getattr(getattr(cupy, "cuda", None), "runtime", None)
    if runtime is None or not _has_context(index):
        return None
    current = runtime.getDevice()
    if current == index:
        return _cupy_pool(cupy)
    if not _has_context(current):  # to make it current again would make one
        return None
    runtime.setDevice(index)
    try:
        return _cupy_pool(cupy)
    finally:
        runtime.setDevice(current)


def _cupy_pool(cupy):
    pool, own = cupy.get_default_memory_pool(), _cupy_own_pool(cupy)
    pools = [pool] if own is None or own is pool else [pool, own]
    return sum(each.used_bytes() for each in pools), sum(each.total_bytes() for each in pools)


def _cupy_own_pool(cupy):
    """That of the program's own allocator, ``set_allocator(pool.malloc)``; None: it has no counts."""
    get = getattr(cupy.cuda, "get_allocator", None)
    allocator = get() if get is not None else None
    if not _is_of(allocator, ("builtins", "_cython", "cupy")):  # another one's attributes may be code
        return None
    pool = getattr(allocator, "__self__", None)
    return pool if _is_of(pool, ("cupy",)) and hasattr(pool, "used_bytes") else None


def _is_of(thing, packages):
    """Whether its class is of one of these packages, and no class of the program's."""
    module = type.__getattribute__(type(thing), "__module__")
    return isinstance(module, str) and module.split(".")[0].startswith(packages)


def _has_context(index):
    """Whether device `index` has a primary context, asked of the loaded driver."""
    ctypes = sys.modules.get("ctypes")  # torch has imported it
    if ctypes is None:
        import ctypes
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        get, state = driver.cuDeviceGet, driver.cuDevicePrimaryCtxGetState
    except (OSError, AttributeError):  # none, or one that only pretends
        _core.let_through()
        return False
    device, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    return (
        get(ctypes.byref(device), index) == 0
        and state(device, ctypes.byref(flags), ctypes.byref(active)) == 0
        and active.value != 0
    )  # fmt: skip


def _jax(index):
    bridge = sys.modules.get("jax._src.xla_bridge")
    backends = dict(getattr(bridge, "_backends", None) or {})
    for kind in ("cuda", "rocm", "gpu"):
        client = backends.get(kind)
        for device in client.local_devices() if client is not None else ():
            if device.local_hardware_id == index:
                stats = device.memory_stats() or {}
                allocated = stats.get("bytes_in_use")
                reserved = stats.get("pool_bytes", stats.get("bytes_reserved", 0))
                return None if allocated is None else (allocated, reserved or 0)
    return None


def _rmm(index):
    """Of the current resource, and that of `index` where RMM tells them apart.

    A pool without statistics does not say how much of it is allocated: its objects do.
    """
    module = sys.modules.get("rmm.mr")
    if module is None or not _has_context(index):
        return None
    resource = module.get_per_device_resource(index)
    while resource is not None and _is_of(resource, ("rmm",)):
        if isinstance(resource, getattr(module, "StatisticsResourceAdaptor", ())):
            held = resource.allocation_counts.current_bytes
            return held, _pool_size(resource)
        if hasattr(resource, "pool_size"):
            return 0, resource.pool_size()
        resource = _upstream(resource)
    return None


def _upstream(resource):
    get = getattr(resource, "get_upstream", None)
    return get() if get is not None else None


def _pool_size(resource):
    while resource is not None and _is_of(resource, ("rmm",)):
        pool_size = getattr(resource, "pool_size", None)
        if pool_size is not None:
            return pool_size()
        resource = _upstream(resource)
    return 0


_ASKED = (
    ("torch", "torch", _torch),
    ("cupy", "cupy", _cupy),
    ("jax", "jax._src.xla_bridge", _jax),
    ("rmm", "rmm.mr", _rmm),
)


# Which libraries ask the driver for the pools of each.
_LIBRARIES = {
    "torch": ["libc10_cuda.so"],
    "cupy": ["runtime.cpython-"],  # cupy_backends.cuda.api.runtime
    "jax": ["xla_cuda_plugin.so", "xla_extension.so"],
    "rmm": ["librmm.so"],
}


# They keep no count of their bytes, or not always: the driver alone sees them all.
_UNCOUNTED = ("numba.cuda", "cuda.core", "rmm.mr")


def _are_uncounted():
    return any(module in sys.modules for module in _UNCOUNTED)


def others_are_imported():
    """Whether a framework beside torch may hold memory of a GPU."""
    return _are_uncounted() or any(
        module in sys.modules for name, module, _ in _ASKED if name != "torch")


def is_used_uncounted(index):
    """Whether device `index` has a context, and who may use it keeps no count."""
    return _are_uncounted() and _has_context(index)
