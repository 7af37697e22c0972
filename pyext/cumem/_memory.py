# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Where each device's memory is: asked of the frameworks in use and of the driver.

Nothing is imported, initialised or allocated; what cannot be said is None.
"""

import os
import sys

from . import _core, _frameworks, _recorder

_COMMON = (0, 0)
_NOTHING = {
    "allocated": 0, "reserved": 0, "cached": 0, "pending_free": None, "private_pools": None,
    "outside_frameworks": None, "other_processes": None, "total": None, "free": None,
    "largest_free": None, "peak_allocated": 0, "frameworks": {}, "pools": [],
    "why": "no accelerator is in use",
}  # fmt: skip
_UNASKED = (
    "torch's recorder is on, and not cumem's: it is not asked for its pools and largest free block"
)
_REFUSED = (
    "torch.cuda.memory_snapshot() raises {} (call it to see why): "
    "pools and the largest free block are not known"
)
_EXPECTED = "expected 'cuda', 'cuda:0', an index or a torch.device of a CUDA device"


def memory(device=None):
    """Where the memory of one device is, in bytes.

    Parameters
    ----------
    device : str, int or torch.device, optional
        ``"cuda:1"`` or ``1``; default: torch's current device, else the first in use,
        else none (a machine without accelerator): nothing allocated, and ``why``.

    Returns
    -------
    dict
        ``allocated``, ``reserved``, ``cached`` (reserved and free),
        ``pending_free`` (freed, but another stream still uses it),
        ``private_pools`` (reserved by CUDA graphs and MemPools),
        ``outside_frameworks`` (of this process: NCCL, cuBLAS, contexts),
        ``other_processes``, ``total``, ``free``, ``largest_free`` (free block of
        torch's common pool); ``frameworks`` ({name: (allocated, reserved)}),
        ``pools`` (each with ``requested`` beside ``allocated``, its own
        ``largest_free``, and whether segments of it are ``expandable``) and ``why`` (what could not be said).  None: not known.

    Raises
    ------
    ValueError
        For a device that is not there or not in use; it names the value.

    Notes
    -----
    Sums of ``torch.cuda.memory_snapshot()``, of each framework's own counters, and
    NVML's figures for the device and this process.  Frameworks that keep no count
    (Numba, cuda.core, RMM and CuPy without a pool) hold what their live objects do;
    those are known that were made while cumem observes, the others' bytes are outside.
    """
    used = _in_use()
    if device is None and not used:
        return dict(_NOTHING, frameworks={}, pools=[])
    index = _index(device, list(used))
    if index not in used:
        raise ValueError(f"no memory is in use on device {device!r} (in use: {_names(used)})")
    return _row(index, used[index], snapshot=True)


def _names(indices):
    return ", ".join(f"cuda:{index}" for index in indices) or "none"


def _index(device, used):
    if device is None:
        current = _current()
        return current if current in used or not used else used[0]
    text = str(device)
    number = device if isinstance(device, int) else None
    if number is None and not isinstance(device, str):
        number = getattr(device, "index", None)
    if isinstance(device, bool) or (number is None and not text.startswith("cuda")):
        raise ValueError(f"no such device: {device!r}; {_EXPECTED}")
    if number is None:
        tail = text.partition(":")[2] or str(_current())
        if not tail.isdecimal():
            raise ValueError(f"no such device: {device!r}; {_EXPECTED}")
        number = int(tail)
    return number


def _current():
    cuda = _frameworks.torch_cuda()
    return cuda.current_device() if cuda is not None else 0


def devices():
    """Indices of the CUDA devices on which a framework holds memory, or may."""
    return list(_in_use())


def pool_libraries():
    """The libraries whose memory from the driver is that of pools that rows() have."""
    return _frameworks.pool_libraries(_in_use())


def _in_use():
    """{index: what each framework holds there}."""
    cuda = _frameworks.torch_cuda()
    if cuda is None and not _frameworks.others_are_imported():
        return {}
    _core.ask_objects()
    most = cuda.device_count() if cuda is not None else 16
    used = {index: _frameworks.use(index) for index in range(most)}
    return {index: frameworks for index, frameworks in used.items()
            if frameworks or _frameworks.is_used_uncounted(index)}  # fmt: skip


def rows(snapshot, asked=None):
    """A row for each device in use, for the document.

    `snapshot`: there is time to ask for each pool.
    `asked`: {index: (bytes of an allocation that failed, bytes free then)}.
    """
    found = []
    for index, frameworks in _in_use().items():
        row = _row(index, frameworks, snapshot)
        row["name"] = f"cuda:{index}"
        row["unasked"] = _is_unasked()
        row["asked_bytes"], free = (asked or {}).get(index, (0, None))
        if free is not None:  # at the failure; others may have given some back since
            row["free"] = free if row["free"] is None else min(row["free"], free)
        row["frameworks"] = [(name, *use) for name, use in row["frameworks"].items()]
        row["pools"] = [tuple(pool.values()) for pool in row["pools"]]
        found.append(row)
    return found


def _row(index, frameworks, snapshot):
    stats = _frameworks.torch_stats(index)
    total, _, free, own, others, why = _core.process_use(index)
    allocated = sum(use[0] for use in frameworks.values())
    reserved = sum(use[1] for use in frameworks.values())
    taken, refused = _snapshot() if snapshot else ([], "")
    pools = _pools(index, taken)
    pending = _pending(stats, pools)
    row = {
        "allocated": allocated,
        "reserved": reserved,
        "cached": _cached(frameworks, pending),
        "pending_free": pending,
        "private_pools": sum(p["reserved"] for p in pools if p["name"] != "common")
        if pools else None,
        "outside_frameworks": max(own - reserved, 0) if own is not None else None,
        "other_processes": others,
        "total": total if total is not None else _total(index),
        "free": free,
        "largest_free": next((p["largest_free"] for p in pools if p["name"] == "common"), None),
        "peak_allocated": max(_frameworks.torch_bytes(stats, "allocated", "peak"), allocated),
        "frameworks": frameworks,
        "pools": pools,
        "why": "; ".join(filter(None, (why, _UNASKED if _is_unasked() else refused))),
    }  # fmt: skip
    return row


def _total(index):
    cuda = _frameworks.torch_cuda()
    return cuda.get_device_properties(index).total_memory if cuda is not None else None


def _pending(stats, pools):
    if pools:
        return sum(pool["pending_free"] for pool in pools)
    active, allocated = (_frameworks.torch_bytes(stats, kind) for kind in ("active", "allocated"))
    return max(active - allocated, 0) if "active_bytes" in stats else None


def _cached(frameworks, pending):
    if not frameworks:
        return None
    held = sum(reserved - allocated for allocated, reserved in frameworks.values())
    return max(held - (pending or 0), 0)


def _pools(index, taken):
    """torch's pools on a device, largest first: whether their free bytes lie together."""
    pools = {}
    for segment in taken:
        if segment.get("device") != index:
            continue
        name = _pool_name(segment)
        pool = pools.setdefault(name, {
            "name": name, "reserved": 0, "allocated": 0, "requested": 0,
            "pending_free": 0, "largest_free": 0, "segments": 0, "expandable": False,
        })  # fmt: skip
        _add_segment(pool, segment)
    return sorted(pools.values(), key=lambda pool: -pool["reserved"])


def _pool_name(segment):
    number = tuple(segment.get("segment_pool_id", _COMMON))
    return "common" if number == _COMMON else str(number)


def _add_segment(pool, segment):
    pool["segments"] += 1
    pool["expandable"] |= bool(segment.get("is_expandable"))
    pool["reserved"] += segment["total_size"]
    pool["allocated"] += segment["allocated_size"]
    for block in segment["blocks"]:
        size = block["size"]
        if block["state"] == "inactive":
            pool["largest_free"] = max(pool["largest_free"], size)
        elif block["state"] == "active_allocated":
            pool["requested"] += block.get("requested_size", size)
        else:
            pool["pending_free"] += size


def segments():
    """torch's segments with their blocks; none where the program's own recorder is on."""
    return _snapshot()[0]


def _snapshot():
    """The segments, and why there are none."""
    cuda = _frameworks.torch_cuda()
    if cuda is None or _is_unasked():
        return [], ""
    try:
        return cuda.memory_snapshot(), ""
    except Exception as error:  # another allocator: it has no segments
        _core.let_through()
        return [], _REFUSED.format(type(error).__name__)


def _is_unasked():
    return _frameworks.torch_cuda() is not None and _recorder.is_theirs()


def note_backend():
    """Tell the core where torch's memory comes from an allocator that tells nobody."""
    ask = getattr(sys.modules["torch"]._C, "_cuda_getAllocatorBackend", None)
    backend = ask() if ask is not None else "native"
    if backend != "native":
        _core.silent(
            f"torch's {backend} backend tells nobody of its blocks: lines and growth are of the "
            "tensors that Python has (each block's: backend:native in PYTORCH_CUDA_ALLOC_CONF)"
        )
    elif os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") == "1":
        _core.silent(
            "under PYTORCH_NO_CUDA_MEMORY_CACHING torch tells nobody of its blocks: lines and "
            "growth are of the tensors that Python has"
        )


def note_pools():
    """Tell the core which memory belongs to CUDA graphs and MemPools."""
    _core.pools([
        (segment["address"], segment["total_size"], _pool_name(segment))
        for segment in segments() if _pool_name(segment) != "common"
    ])  # fmt: skip


def note_blocks():
    """Tell the core of blocks that were allocated before it listened."""
    rows = []
    for segment in segments():
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                rows.append((block.get("address", at), block["size"], segment["device"],
                             segment["stream"], 0))
            at += block["size"]
    _core.seed_blocks(rows)
