# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""One dead cycle for each framework that is here: is it found, with bytes,
device, type and stack?

    python bench/frameworks.py [--device cpu|cuda] [NAME...]

Each framework runs in a process of its own, then all together in one.  What
fails is printed with what the framework's objects look like, so that one run
is enough to mend it.  Exit status 1: something failed.
"""

import argparse
import gc
import importlib
import importlib.util
import json
import subprocess
import sys
import traceback

import measure

MIB = 1 << 20
# The module to import, the distributions whose versions matter, MiB to hold.
FRAMEWORKS = {
    "torch": ("torch", ("torch",), 3),
    "cupy": ("cupy", ("cupy-cuda13x", "cupy-cuda12x", "cupy"), 5),
    "jax": ("jax", ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin"), 7),
    "numba": ("numba.cuda", ("numba", "numba-cuda", "cuda-bindings"), 11),
    "rmm": ("rmm", ("rmm-cu13", "rmm-cu12", "rmm"), 13),
    "cuda_core": ("cuda.core", ("cuda-core", "cuda-bindings"), 17),
}
TYPES = {"torch": "Tensor", "cupy": "ndarray", "jax": "ArrayImpl",
         "numba": "DeviceNDArray", "rmm": "DeviceBuffer", "cuda_core": "Buffer"}


class Node:
    pass


def make_torch(size, device):
    import torch
    return torch.zeros(size // 4, dtype=torch.float32, device=device)


def make_cupy(size, device):
    import cupy
    return cupy.zeros(size // 4, dtype=cupy.float32)


def make_jax(size, device):
    import jax.numpy
    return jax.numpy.zeros(size // 4, dtype=jax.numpy.float32).block_until_ready()


def make_numba(size, device):
    import numpy
    from numba import cuda
    return cuda.device_array(size // 4, dtype=numpy.float32)


def make_rmm(size, device):
    import rmm
    return rmm.DeviceBuffer(size=size)


def make_cuda_core(size, device):
    from cuda.core import Device
    here = Device(0)
    here.set_current()
    return here.memory_resource.allocate(size, stream=here.default_stream)


MAKE = {name: globals()["make_" + name] for name in FRAMEWORKS}


def versions(name):
    from importlib.metadata import PackageNotFoundError, version
    found = {}
    for distribution in FRAMEWORKS[name][1]:
        try:
            found[distribution] = version(distribution)
        except PackageNotFoundError:
            pass
    return found


def is_here(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def leak(name, device):
    node = Node()
    node.held = MAKE[name](FRAMEWORKS[name][2] * MIB, device)
    node.me = node


# ---- what was found

def objects_of(report, cycle):
    """What is dead with a cycle, as text: labels, types, devices, stacks."""
    wanted = {*cycle["vertices"], *cycle["payload"]}
    edges = [edge for edge in report["edges"] if edge["tail"] in wanted]
    wanted |= {edge["head"] for edge in edges}
    vertices = [vertex for vertex in report["vertices"] if vertex["id"] in wanted]
    storages = [storage for storage in report["storages"]
                if wanted & set(storage["vertices"])]
    sites = {each["site"] for each in vertices + storages}
    return json.dumps([vertices, storages,
                       [site for site in report["sites"] if site["id"] in sites]])


def check_report(names, report, device, how):
    """Complaints about one report, as lines."""
    for name in names:
        size = FRAMEWORKS[name][2] * MIB
        cycles = [cycle for cycle in report["cycles"]
                  if f"{TYPES[name]} " in objects_of(report, cycle)
                  and cycle["total_bytes"] == size * cycle["count"]]
        if len(cycles) != 1:
            seen = [(c["class"], c["count"], c["total_bytes"]) for c in report["cycles"]]
            yield f"{how}: {name}: no cycle of {size} bytes with a {TYPES[name]}; found {seen}"
            continue
        text = objects_of(report, cycles[0])
        if f'"{device}"' not in text:
            yield f"{how}: {name}: device {device} is not named"
        if f"make_{name}" not in text:
            yield f"{how}: {name}: no allocation stack through make_{name}"
    total = sum(FRAMEWORKS[name][2] * MIB for name in names)
    found = sum(cycle["total_bytes"] for cycle in report["cycles"])
    if found != total:
        yield f"{how}: {found} bytes in all, not {total}"


def run(names, device):
    import cumem
    reports = []
    handle = cumem.observe_tensor_cycles(reports.append)
    for name in names:
        importlib.import_module(FRAMEWORKS[name][0])
    for name in names:  # whatever the framework makes once, and learning
        leak(name, device)
    gc.collect()
    gc.collect()
    reports.clear()
    expected = "cpu" if device == "cpu" else "cuda:0"
    for name in names:
        leak(name, device)
    scan = cumem.find_cycles()
    complaints = list(check_report(names, scan.report, expected, "find_cycles"))
    gc.collect()
    cumem.flush()
    if len(reports) != 1:
        complaints.append(f"collection: {len(reports)} reports")
    for report in reports[-1:]:
        complaints += check_report(names, report.report, expected, "collection")
    print(scan.text)
    print("frameworks:", cumem.status()["frameworks"])
    print("use:", use())
    handle.remove()
    if complaints:
        for name in names:
            diagnose(name, device)
        for report in [scan, *reports]:
            print(json.dumps(report.report)[:3000])
    return complaints


def use():
    from cumem import _frameworks
    return _frameworks.use(0)


# ---- what an object looks like

def diagnose(name, device):
    print(f"-- {name}: what its object looks like")
    try:
        held = MAKE[name](FRAMEWORKS[name][2] * MIB, device)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return
    kind = type(held)
    print("type", kind, "bases", [base.__qualname__ for base in kind.__mro__],
          "basicsize", kind.__basicsize__, "flags", hex(kind.__flags__),
          "tracked", gc.is_tracked(held))
    show_words(held)
    print("referents", [type(other).__qualname__ for other in gc.get_referents(held)])
    for base in kind.__mro__[:-1]:
        print(base.__qualname__, {key: type(value).__name__ for key, value in vars(base).items()
                                  if not callable(value) and not key.startswith("__")})
    EXTRA.get(name, lambda _: None)(held)


def show_words(held):
    from cumem import _core
    known = {id(None): "None", id(type(held)): "its type"}
    for key in ("dtype", "sharding", "aval", "memory_resource", "owner"):
        try:
            known[id(getattr(held, key))] = key
        except Exception:
            pass
    for at, word in enumerate(_core.jax_probe("words", held) or ()):
        if word:
            behind = _core.jax_probe("peek", word, 2) if word > 65536 else None
            print(f"  +{at * 8}: {word:#x} {known.get(word, '')}",
                  [hex(each) for each in behind or ()])


def show_numba(array):
    for what in (array, array.gpu_data, array.gpu_data._mem,
                 array.gpu_data._mem.context, array.gpu_data._mem.context.device):
        print(type(what), {key: f"{type(value).__qualname__} {value!r}"[:80]
                           for key, value in vars(what).items()})


def show_jax(array):
    bridge = sys.modules["jax._src.xla_bridge"]
    print("backends", {kind: [str(device) for device in client.local_devices()]
                       for kind, client in bridge._backends.items()})
    print("sharding", array.sharding, "memory kind", array.sharding.memory_kind)
    show_words(array.sharding)
    from cumem import _jax
    print("probe says", _jax.probe())


def show_cuda_core(held):
    memory = held.memory_resource
    print("memory", type(memory).__mro__, memory.device_id)
    print(type(type(memory).__dict__.get("device_id")))


EXTRA = {"numba": show_numba, "jax": show_jax, "cuda_core": show_cuda_core}


# ---- all of them

def run_one(names, device):
    """In this process: exit status 1 with what failed as the last lines."""
    for name in names:
        print("versions", name, versions(name))
    try:
        complaints = run(names, device)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        complaints = ["raised"]
    for complaint in complaints:
        print("FAILED", complaint)
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--here", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = options.names or list(FRAMEWORKS)
    if options.here:
        return run_one(names, options.device)
    print(*measure.head(measure.machine()), "", sep="\n", flush=True)
    here = [name for name in names if is_here(FRAMEWORKS[name][0])]
    print("python", sys.version.split()[0], "here:", here,
          "not here:", [name for name in names if name not in here])
    failed = []
    for group in [[name] for name in here] + ([here] if len(here) > 1 else []):
        print("====", *group, flush=True)
        code = subprocess.run(
            [sys.executable, __file__, "--here", "--device", options.device, *group],
            timeout=240).returncode
        if code != 0:
            failed.append("+".join(group) + ("" if code == 1 else f" (exit status {code})"))
    print("==== frameworks:", "all found" if not failed else "FAILED: " + ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
