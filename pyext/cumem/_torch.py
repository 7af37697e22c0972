# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Facts about torch for the core, from torch's own getters on probe tensors.

Called by the core once the user has imported torch; never imports it.  The
probes live on the CPU and on the meta device: no accelerator is touched.
"""

import sys

from . import _autograd, _core

_DTYPES = (
    "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128 "
    "float8_e4m3fn float8_e5m2"
).split()
_CPU, _META = 0, 14


def _is_importing(module):
    """Its own import is under way: torch.empty() would ask importlib for it, and CPython 3.11
    then fails the import that we are called within."""
    return bool(getattr(module.__spec__, "_initializing", False))


def _mode_is_active(torch):
    """A dispatch or function mode would see our probes: wait until it is over."""
    length = getattr(torch._C, "_len_torch_dispatch_stack", None)
    functions = getattr(torch._C, "_len_torch_function_stack", None)
    return bool((length and length()) or (functions and functions()))


def _facts(tensor, dtype, device):
    storage = tensor.untyped_storage()
    shape = tuple(tensor.shape)
    return storage, (
        id(tensor), tensor._cdata, id(storage), storage._cdata,
        storage.data_ptr() if device == _CPU else 0, storage.nbytes(),
        len(shape), shape[0], shape[1], shape[2], device, dtype,
    )  # fmt: skip


def _use_half(tensor, address):
    """Index of the 32-bit half of the structure at `address` that counts its uses, or -1.

    Two more views of `tensor` are two more uses of its storage, and of itself as their base.
    """
    before = _core.torch_probe("halves", address)
    views = [tensor.view(-1), tensor.view(-1)]
    during = _core.torch_probe("halves", address)
    del views
    after = _core.torch_probe("halves", address)
    found = [
        i for i, (a, b, c) in enumerate(zip(before, during, after))
        if b == a + 2 and c == a and 1 <= a <= 8
    ]  # fmt: skip
    return found[0] if len(found) == 1 else -1


def _is_counted(tensor):
    """Whether C++ holds a reference to the object of a tensor that it uses, as from torch 2.10 on.

    Then the object of what only autograd saved is alive, and is no sign that Python knows it.
    """
    before = sys.getrefcount(tensor)
    view = tensor.view(-1)
    during = sys.getrefcount(tensor)
    del view
    return during == before + 1


def _kept_half(get):
    """Index of the 32-bit half of the object that get() returns whose lowest byte is 1 while only
    C++ holds that object, and lends it what it stands for: up to torch 2.9.  Or -1.
    """
    thing = get()
    address = id(thing)
    held = _core.torch_probe("peek", address)
    del thing
    kept = _core.torch_probe("peek", address)
    thing = get()
    again = _core.torch_probe("peek", address)
    if id(thing) != address:
        return -1  # it was not kept
    found = [
        i for i in range(object.__basicsize__ // 4, len(held))
        if [halves[i] & 0xFF for halves in (held, kept, again)] == [0, 1, 0]
    ]  # fmt: skip
    return found[0] if len(found) == 1 else -1


def _probe_kept(torch, tensor):
    """How an object is known that only C++ holds, where C++ does not hold a reference to it."""
    with torch.inference_mode(False):  # a view then knows its base
        view = torch.empty(2, device="cpu").view(-1)
    _core.torch_probe(
        "kept", _kept_half(lambda: view._base), _kept_half(tensor.untyped_storage)
    )


def _probe_nodes(torch):
    """Where an autograd node keeps its number: from two nodes on the CPU, which never run."""
    with torch.enable_grad(), torch.inference_mode(False):
        leaf = torch.ones(3, device="cpu", requires_grad=True)
        nodes = [(leaf * 2).grad_fn, (leaf + 1).grad_fn, (leaf * leaf).grad_fn]
    number = getattr(nodes[0], "_sequence_nr", None)
    if number is not None:
        _core.forward_probe([(id(node), node._sequence_nr()) for node in nodes])


def probe():
    """Teach the core torch's layout.

    Returns True when it is learnt, None to be asked again later.  Raises
    RuntimeError with what was not found.
    """
    torch = sys.modules["torch"]
    if _is_importing(torch) or _mode_is_active(torch) or _autograd.is_hooked(torch):
        return None
    keep, facts = [], []
    for index, dtype in enumerate(_DTYPES):
        if not hasattr(torch, dtype):
            continue
        shape = (3 + index, 5, 7 + index)
        tensor = torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")
        storage, fact = _facts(tensor, dtype, _CPU)
        keep.append((tensor, storage))
        facts.append(fact)
    hosts = len(facts)
    tensor = torch.empty((11, 13, 17), dtype=torch.float32, device="meta")
    storage, fact = _facts(tensor, "float32", _META)
    keep.append((tensor, storage))
    facts.append(fact)
    _core.torch_probe("probes", facts, hosts)
    _probe_kept(torch, torch.empty(2, device="cpu"))
    tensor, storage = keep[0]
    _core.torch_probe(
        "types", torch._C.TensorBase, type(storage).__mro__[1],
        _use_half(tensor, storage._cdata), _use_half(tensor, tensor._cdata),
        _is_counted(tensor),
    )  # fmt: skip
    _core.tag_types(_tensor_types(torch))
    _probe_nodes(torch)
    try:
        _autograd.probe()
    except Exception:  # cumem.status() says what was not found
        _core.let_through()
    _core.describe({"torch": str(torch.__version__)})
    return True


def _derived(cls):
    """`cls`, first, and every class derived from it so far."""
    found, todo = {}, [cls]
    while todo:
        cls = todo.pop()
        if id(cls) not in found:
            found[id(cls)] = cls
            todo.extend(type.__subclasses__(cls))
    return list(found.values())


def _tensor_types(torch):
    """torch.Tensor, first, its storage, what is derived from them, and the metaclasses."""
    metaclass = type(torch.Tensor)
    found = _derived(torch.Tensor) + _derived(torch.UntypedStorage)
    return found + (_derived(metaclass) if metaclass is not type else [])


def retag():
    """Tag tensor classes anew, with those that were made since."""
    _core.tag_types(_tensor_types(sys.modules["torch"]))
