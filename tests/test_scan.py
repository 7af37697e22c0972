# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What a scan says of a storage is what a collection then does, whoever else has to do with it."""

from importlib.metadata import version

import pytest

from process import NODES, run_ok

TORCH = tuple(int(number) for number in version("torch").split(".")[:2])

START = NODES + """
import copy, io, pickle, weakref
MIB = 1 << 20
pages, kept = [], []
gc.collect()
gc.disable()
handle = cumem.observe_tensor_cycles(pages.append)

def bytes_of(report):
    return sum(c["peak_bytes"] for c in report["cycles"])

def foretold_and_freed():
    foretold = bytes_of(cumem.find_cycles().report)
    pages.clear()
    gc.collect()
    return foretold, sum(bytes_of(page.report) for page in pages)

class Leaf(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        ctx.y = x * 2  # its own output
        return ctx.y
    @staticmethod
    def backward(ctx, grad):
        return grad

class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 1
    def __getitem__(self, i):
        return torch.zeros(MIB // 4)

def die_with(tensor):
    node = Node(tensor)
    node.link = node
    return node
"""

# Each leaves a Python object behind that the storage keeps.
MAKERS = {
    "none": "torch.zeros(MIB // 4)",
    "untyped_storage": "torch.zeros(MIB // 4); t.untyped_storage()",
    "deepcopy": "copy.deepcopy(torch.zeros(MIB // 4))",
    "pickle": "pickle.loads(pickle.dumps(torch.zeros(MIB // 4)))",
    "share_memory": "torch.zeros(MIB // 4).share_memory_()",
    "load": "file = io.BytesIO(); torch.save(torch.zeros(MIB // 4), file); file.seek(0)\n"
            "    t = torch.load(file)",
    "a worker's batch": "next(iter(torch.utils.data.DataLoader(Batches(), num_workers=1)))",
}  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
def test_a_storages_own_object_holds_nothing(tmp_path, maker):
    run_ok(START + f"""
def make():
    t = {MAKERS[maker]}
    gc.collect()  # what pickling leaves
    return die_with(t)
make()
told = foretold_and_freed()
assert told == (MIB, MIB), told
node = make()
kept.append(node.tensor.untyped_storage())
del node
told = foretold_and_freed()
assert told == (0, 0), told
""", cwd=tmp_path)


# Who else uses the storage of `t`, which goes with a dead cycle; `w` wants a gradient.
HOLDERS = {
    "its storage": "kept.append(t.untyped_storage())",
    "a typed storage": "kept.append(t.storage())",
    "a tensor": "kept.append(t.data)",
    "an array": "kept.append(t.data.numpy())",
    "a capsule": "kept.append(torch.utils.dlpack.to_dlpack(t.data))",
    "a graph": "kept.append(w * t.data)",
    "a graph of a new tensor": "kept.append(w * t.data[1:2])",
    "a frozen object": "kept.append(t.untyped_storage()); gc.freeze()",
    "an iterator": "kept.append(iter([t.data]))",
}  # fmt: skip


@pytest.mark.parametrize("own", ["", "t.untyped_storage()"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_storage_that_is_held_elsewhere_counts_nothing(tmp_path, holder, own):
    run_ok(START + f"""
w = torch.ones(1, requires_grad=True)
def make():
    t = torch.zeros(MIB // 4)
    {own}
    {HOLDERS[holder]}
    return die_with(t)
make()
told = foretold_and_freed()
assert told == (0, 0), told
""", cwd=tmp_path)


# Whom an array or a capsule holds, no collector is shown: a scan takes it for alive.
OPAQUE = {"an array", "a capsule", "a frozen object"}


@pytest.mark.parametrize("holder", [name for name in HOLDERS if name not in OPAQUE])
def test_a_storage_whose_holder_dies_too_goes(tmp_path, holder):
    run_ok(START + f"""
w = torch.ones(1, requires_grad=True)
def make(kept):
    t = torch.zeros(MIB // 4)
    t.untyped_storage()
    {HOLDERS[holder]}
    die_with(t).also = kept
make([])
foretold, freed = foretold_and_freed()
assert foretold == freed >= MIB, (foretold, freed)
""", cwd=tmp_path)


LEAF_HOLDERS = {
    "nobody": ("pass", 2),
    "a variable": ("kept.append(x)", 1),
    "another graph": ("kept.append(x * 3)", 1),
    "its node": ("kept.append((x * 3).grad_fn.next_functions[0][0])", 1),
    "a tensor of its storage": ("kept.append(x.data)", 1),
    "another dead cycle": ("die_with(x.neg())", 3),
}


@pytest.mark.parametrize("holder", LEAF_HOLDERS)
def test_a_leaf_goes_with_the_only_graph_that_holds_it(tmp_path, holder):
    hold, blocks = LEAF_HOLDERS[holder]
    if holder in ("another graph", "its node") and TORCH < (2, 10):
        pytest.skip("there the leaf's object is garbage like another, and comes back")
    run_ok(START + f"""
def make():
    x = torch.zeros(MIB // 4, requires_grad=True)
    x.untyped_storage()
    {hold}
    return weakref.ref(x), weakref.ref(Leaf.apply(x))
leaf, output = make()
foretold = bytes_of(cumem.find_cycles().report)
assert foretold == {blocks} * MIB, foretold
gc.collect()
lives = any(holder is not None for holder in (leaf(), *kept))
assert output() is None and lives == bool(kept)
""", cwd=tmp_path)
