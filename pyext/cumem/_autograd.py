# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Facts about torch's autograd for the core, from a few small tensors on the CPU.

Called once the core knows torch's tensors.  No hook is registered (they take numbers of the
program's), no backward pass runs, nothing stays alive but one class.  functorch is asked nothing:
a thread that did so once carries its state from then on, which torch copies with each backward
pass (150,000 instructions an iteration of a small transformer).
"""

import sys

from . import _core

_kept = None


def _function(torch):
    """A Function that keeps its inputs; one for the life of the process: a class is a cycle."""
    global _kept
    if _kept is None:
        class _Kept(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b, c):
                ctx.save_for_backward(a, b, c)
                return a.new_zeros(3)

        _kept = _Kept
    return _kept


def _apply(torch, *tensors):
    """As Function.apply() does, which would ask functorch first."""
    return super(torch.autograd.Function, _function(torch)).apply(*tensors)


def _pack(tensor):
    return _packed


def _unpack(packed):
    return packed


_packed = ("packed",)


def _probes(torch):
    """Tensors by name, and those that need no name."""
    a, b, leaf, *grads = (torch.ones(3, dtype=torch.float32, device="cpu") for _ in range(5))
    for tensor in (a, b, leaf):
        tensor.requires_grad_(True)
    a.grad, leaf.grad = grads
    product = a * b
    depths = [product * 1.0]
    for _ in range(3):
        depths.append(depths[-1] * 1.0)
    base = product * 2.0
    with torch.autograd.graph.saved_tensors_hooks(_pack, _unpack):
        packed = product * b
    return {
        "a": a, "b": b, "leaf": leaf, "product": product, "a_grad": a.grad, "leaf_grad": leaf.grad,
        "view_base": base, "view": base.view(-1), "lerp": torch.lerp(a, b, leaf),
        "packed": packed, "depth_1": product, "depth_2": depths[0], "depth_5": depths[3],
        "context": _apply(torch, a, b, leaf),
    }  # fmt: skip


def _facts(tensors):
    nodes = {name: tensor.grad_fn for name, tensor in tensors.items()}
    facts = {}
    for name, tensor in tensors.items():
        facts[name] = id(tensor)
        facts[name + "_impl"] = tensor._cdata
        if nodes[name] is not None:
            facts[name + "_fn"] = id(nodes[name])
    for name in ("depth_1", "depth_2", "depth_5", "context"):
        facts[name] = id(nodes[name])
    leaves = [edge[0] for edge in nodes["product"].next_functions]
    facts["accumulate_a"], facts["accumulate_b"] = map(id, leaves)
    facts["pack"], facts["unpack"], facts["packed"] = id(_pack), id(_unpack), id(_packed)
    return facts, (nodes, leaves)


def _uses(tensors):
    """Whether the uses of a node are counted, and who holds whom."""
    product = tensors["product"]
    node, above = product.grad_fn, product * 3.0
    owner = above.grad_fn
    counts = [(_core.autograd_probe("uses", owner), sys.getrefcount(node))]
    more = product * 4.0
    counts.append((_core.autograd_probe("uses", owner), sys.getrefcount(node)))
    del more
    counts.append((_core.autograd_probe("uses", owner), sys.getrefcount(node)))
    counted = counts[1][0] == counts[0][0] + 1 and counts[2][0] == counts[0][0]
    # Both have uses that are not Python's: a view's base, a tensor's node.
    tensor, plain = product * 5.0, object()
    view = tensor.view(-1)
    once = sys.getrefcount(plain)
    tensors_are_mutual = sys.getrefcount(tensor) == once + 1
    del view
    fresh = tensor.grad_fn  # one that nobody else holds
    nodes_are_mutual = sys.getrefcount(fresh) == once + 1
    above = tensors["context"] * 6.0  # the uses of that node: two, and its object's
    functions_count = _core.autograd_probe("uses", above.grad_fn) == 3
    return counted, tensors_are_mutual, nodes_are_mutual, functions_count


def is_hooked(torch):
    """Our tensors would go through hooks or transforms of the program's: not now."""
    return bool(_has_saved_hooks(torch) or _is_transformed(torch))


def _is_transformed(torch):
    """Within torch.func's grad(), vmap(), ...: their key is on then."""
    ask = getattr(torch._C, "_dispatch_tls_is_dispatch_key_included", None)
    key = getattr(torch._C.DispatchKey, "FuncTorchDynamicLayerFrontMode", None)
    return bool(ask and key and ask(key))


def _has_saved_hooks(torch):
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if top:
        return top(True) is not None
    try:  # torch 2.6 says it in this way alone
        with torch.autograd.graph.disable_saved_tensors_hooks("cumem asks whether there are any"):
            return False
    except RuntimeError:
        _core.let_through()
        return True


def probe():
    """Teach the core where autograd keeps its graph.  Raises RuntimeError with what was not found.

    Memory that is left from before can mislead a search: two must find the same, each with tensors
    of its own.
    """
    kept, found = [], []
    for left in (3, 2, 1, 0):
        try:
            kept.append(_probe(sys.modules["torch"]))
        except RuntimeError:
            _core.let_through()
            if left == 0:
                raise
            continue
        found.append(_core.autograd_probe("layout"))
        if found.count(found[-1]) == 2:
            return
    _core.autograd_probe("doubt")


def _probe(torch):
    """One search; its tensors, whose memory the next one does not get while they live."""
    with torch.enable_grad(), torch.inference_mode(False):
        tensors = _probes(torch)
        facts, keep = _facts(tensors)
        _core.autograd_probe("learn", facts, torch._C._FunctionBase)
        counted = _uses(tensors)
    _core.autograd_probe("ready", *counted)
    return tensors, keep


_MOST_STEPS = 1_000_000


def behind(tensor):
    """What stands behind a tensor: the core's answer, else what torch's own C getters tell.

    These know the steps of the backward pass alone: "bytes", "retained" and "length" are None.
    Never called inside a collection, since torch makes an object for each step.
    """
    found = _core.autograd_behind(tensor)
    torch = sys.modules.get("torch")
    if found is not None or torch is None or not isinstance(tensor, torch._C.TensorBase):
        return found
    with torch._C.DisableTorchFunctionSubclass():
        first = torch._C.TensorBase.grad_fn.__get__(tensor)
    steps = _steps_behind(torch, first)
    return {"nodes": len(steps), "length": None, "bytes": None, "retained": None,
            "cut": len(steps) >= _MOST_STEPS, "storages": []}  # fmt: skip


def _steps_behind(torch, first):
    """All steps by id: an object of torch's is the same as long as it lives."""
    steps, todo = {}, [first]
    while todo and len(steps) < _MOST_STEPS:
        step = todo.pop()
        if step is None or id(step) in steps:
            continue
        steps[id(step)] = step
        # A Function's class is the program's, and may have an attribute of that name.
        function = isinstance(step, torch._C._FunctionBase)
        edges = (torch._C._FunctionBase if function else type(step)).next_functions.__get__(step)
        todo.extend(edge[0] for edge in edges)
    return steps
