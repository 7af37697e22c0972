# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""leak.json documents for tests of the page and of drawings, built as the
traced process would write them.

    python3 tests/page_leaks.py real > leak.json
"""

import json
import random
import sys

MIB = 1 << 20
GIB = 1 << 30


class Leak:
    """A document under construction; every method returns an id."""

    def __init__(self, device="cuda:0", **keys):
        self.device = device
        self.data = {
            "format": "cumem-leak", "version": 1, "pid": 4711, "rank": 3,
            "world_size": 8, "host": "n7", "python": "3.12.1",
            "torch": "2.13.0", "cumem": "0.1.0",
            "devices": [{"name": device, "total": 79 * GIB,
                         "allocated": 60 * GIB, "reserved": 74 * GIB,
                         "peak_allocated": int(71.4 * GIB),
                         "dead_peak": int(5.1 * GIB),
                         "dead_peak_iteration": 412}],
            "iteration": 640, "interceptor": "sentinel",
            "allocator_hook": "torch slot",
            "lost": {"events": 0, "nodes": 0, "reason": ""},
            "sites": [], "vertices": [], "edges": [], "storages": [],
            "cycles": [], "growth": [], "collections": [],
        }
        self.data.update(keys)

    def add(self, table, **row):
        row["id"] = len(self.data[table]) + 1
        self.data[table].append(row)
        return row["id"]

    def vertex(self, annotation, kind="object", type=None, **more):
        row = {"annotation": annotation, "kind": kind,
               "type": type or annotation, "bytes": 64, "site": None} | more
        return self.add("vertices", **row)

    def edge(self, tail, head, annotation, made_at=(), kind="python"):
        return self.add("edges", annotation=annotation, tail=tail, head=head,
                        kind=kind, made_at=list(made_at))

    def site(self, *frames):
        user = next((i for i, frame in enumerate(frames)
                     if not frame.get("library")), -1)
        return self.add("sites", frames=list(frames), user_frame=user)

    def tensor(self, shape, bytes, site=None, dtype="float32"):
        storage = len(self.data["storages"]) + 1
        size = f"{bytes // MIB} MiB" if bytes >= MIB else f"{bytes} B"
        vertex = self.vertex(f"Tensor {shape} {dtype} {self.device} {size}",
                             "tensor", "torch.Tensor", bytes=bytes,
                             storage=storage, site=site)
        self.add("storages", device=self.device, address="0x7f0000000000",
                 bytes=bytes, block_bytes=bytes, stream="0x0",
                 category="activation", names=[], vertices=[vertex],
                 site=site)
        return vertex

    def cycle(self, vertices, payload, fingerprint, *, cut=(), count=1,
              peak=None, **more):
        payload = [self.data["vertices"][vertex - 1]["storage"]
                   for vertex in payload]
        each = sum(self.data["storages"][storage - 1]["bytes"]
                   for storage in payload)
        row = {"fingerprint": fingerprint, "class": "collectable",
               "vertices": vertices, "payload": payload,
               "also_held_elsewhere": [], "shared_with": [],
               "bytes_each": each, "count": count,
               "peak_bytes": peak or each, "total_bytes": each * count,
               "first_iteration": 3, "last_iteration": 3 + count,
               "time": 1760000000.0, "trigger": "gc", "cut": list(cut),
               "library": None}
        row.update(more)
        self.data["cycles"].append(row)

    def json(self):
        return json.dumps(self.data)


def frame(filename, line, name, source="", before="", after="",
          library=False, certain=True):
    return {"filename": filename, "line": line, "name": name,
            "source": source, "before": before, "after": after,
            "library": library, "certain": certain}


TORCH = "/opt/venv/lib/python3.12/site-packages/torch/"


def add_trainer(leak):
    site = leak.site(
        frame(TORCH + "nn/functional.py", 2317, "linear", library=True),
        frame(TORCH + "nn/modules/linear.py", 125, "Linear.forward",
              "return F.linear(input, self.weight, self.bias)", library=True),
        frame(TORCH + "nn/modules/module.py", 1751, "Module._call_impl",
              library=True),
        frame("/home/ada/job/model.py", 112, "Encoder.forward",
              "        h = self.proj(x)"),
        frame(TORCH + "nn/modules/module.py", 1751, "Module._call_impl",
              library=True),
        frame("/home/ada/job/train.py", 81, "Trainer.step",
              "        loss = self.model(batch)"),
        frame("/home/ada/job/train.py", 140, "main", "    trainer.step(batch)"),
    )
    trainer = leak.vertex("__main__.Trainer")
    attributes = leak.vertex("dict", "container")
    function = leak.vertex("function Trainer.__init__.<locals>.<lambda>",
                           "function", "function")
    closure = leak.vertex("tuple", "container")
    cell = leak.vertex("cell self", "cell", "cell")
    acts = leak.vertex("list", "container")
    tensor = leak.tensor("[64, 65536]", 16 * MIB, site)
    leak.edge(trainer, attributes, "__dict__")
    leak.edge(attributes, function, "['cb']")
    leak.edge(function, closure, "__closure__")
    leak.edge(closure, cell, "cell self")
    cut = leak.edge(cell, trainer, "cell self", [
        frame("/home/ada/job/train.py", 57, "Trainer.__init__",
              "        self.cb = lambda o: self.store(o)",
              "        self.model = model\n        self.acts = []",
              "        model.on_output(self.cb)\n        self.step_count = 0")])
    leak.edge(attributes, acts, "['acts']")
    leak.edge(acts, tensor, "[0]")
    leak.cycle([trainer, attributes, function, closure, cell], [tensor],
               "3f9a2c51d07be481", cut=[cut], count=412,
               peak=int(5.1 * GIB), rule="lambda_on_self",
               advice="capture weakref.ref(self) in the lambda, or set "
                      "self.cb = None when done")


def add_tree(leak, children=9):
    site = leak.site(frame("/home/ada/job/tree.py", 31, "grow",
                           "    node.value = torch.zeros(n, device='cuda')"))
    root = leak.vertex("job.tree.Node")
    kids = leak.vertex("list", "container")
    leak.edge(root, kids, ".children")
    members, tensors, cuts = [root, kids], [], []
    for i in range(children):
        child = leak.vertex("job.tree.Node")
        tensor = leak.tensor(f"[{i + 1}, 262144]", (i + 1) * MIB, site)
        leak.edge(kids, child, f"[{i}]")
        cuts.append(leak.edge(child, root, ".parent", [
            frame("/home/ada/job/tree.py", 18, "Node.add",
                  "        child.parent = self",
                  "    def add(self, child):\n"
                  "        self.children.append(child)",
                  "        return child\n")]))
        leak.edge(child, tensor, ".value")
        members.append(child)
        tensors.append(tensor)
    leak.cycle(members, tensors, "81c04e1133aa0001", cut=cuts[:1], count=20,
               peak=900 * MIB, rule="back_link",
               advice="make Node.parent a weakref.ref, or set it to None "
                      "when done")


def add_exception(leak):
    where = leak.vertex("frame /home/ada/job/data.py:44 in load", "frame",
                        "frame", bytes=0)
    error = leak.vertex("ValueError", "object", "ValueError")
    traceback = leak.vertex("traceback", "traceback", "traceback")
    tensor = leak.tensor("[1024, 1024]", 64 * MIB)
    cut = leak.edge(where, error, "local err", [
        frame("/home/ada/job/data.py", 40, "load", "        err = error",
              "    except ValueError as error:\n        log(error)",
              "    return None\n")])
    leak.edge(error, traceback, "__traceback__")
    leak.edge(traceback, where, "tb_frame")
    leak.edge(where, tensor, "local batch")
    leak.cycle([where, error, traceback], [tensor], "a77e000000000002",
               cut=[cut], rule="exception_in_frame", trigger="exit",
               advice="`finally: err = None` in load: the exception keeps the "
                      "frame, and the frame keeps it",
               **{"class": "finalizer"})


def add_probable(leak):
    owner = leak.vertex("job.cache.Cache")
    method = leak.vertex("bound method Cache.evict", "object", "method")
    tensor = leak.tensor("[4096, 4096]", 32 * MIB)
    leak.edge(owner, method, ".on_full")
    cut = leak.edge(method, owner, "__self__", [
        frame("/home/ada/job/cache.py", 12, "Cache.__init__",
              "        self.on_full = self.evict",
              "        self.items = {}\n        self.limit = limit",
              "\n    def evict(self):", certain=False),
        frame("/home/ada/job/cache.py", 55, "Cache.reset",
              "        self.on_full = self.evict", certain=False)])
    leak.edge(owner, tensor, ".items['x']")
    leak.cycle([owner, method], [tensor], "b000000000000003", cut=[cut],
               count=3, peak=96 * MIB, rule="bound_method_on_self",
               advice="store weakref.WeakMethod(self.evict) in .on_full, or "
                      "set .on_full = None when done")


def add_unknown(leak):
    one = leak.vertex("ext.Handle")
    other = leak.vertex("ext.Pool")
    tensor = leak.tensor("[8, 1048576]", 8 * 4 * MIB)
    leak.edge(one, other, "")
    leak.edge(other, one, "")
    leak.edge(other, tensor, "")
    leak.cycle([one, other], [tensor], "c000000000000004",
               rule="unknown", trigger="scan",
               no_cut_reason="the references are in C fields of ext.Handle, "
                             "which have no line",
               advice="the cycle runs through: Handle, Pool; break one of "
                      "these references")


def add_library(leak, number, size=48 * MIB):
    module = leak.vertex("torch.fx.GraphModule")
    graph = leak.vertex("torch.fx.Graph")
    tensor = leak.tensor("[12, 1048576]", size)
    leak.edge(module, graph, "._graph")
    cut = leak.edge(graph, module, ".owning_module", [
        frame(TORCH + "fx/graph_module.py", 480, "GraphModule.graph",
              "        g.owning_module = self", library=True)])
    leak.edge(module, tensor, ".weight")
    leak.cycle([module, graph], [tensor], f"d0000000000000{number:02x}",
               cut=[cut], rule="back_link",
               advice="make Graph.owning_module a weakref.ref, or set it to "
                      "None when done",
               library={"package": "torch",
                        "link": "pytorch/pytorch#153300"})


def add_small(leak, number):
    node = leak.vertex("job.Small")
    tensor = leak.tensor("[16]", 64 + number)
    cut = leak.edge(node, node, ".me", [
        frame("/home/ada/job/small.py", number, "f", "    node.me = node")])
    leak.edge(node, tensor, ".t")
    leak.cycle([node], [tensor], f"e0000000000000{number:02x}", cut=[cut],
               rule="self_reference",
               advice="make .me a weakref.ref, or set it to None when done")


def real():
    """What a training job would leave: a few findings, all forms."""
    leak = Leak()
    add_trainer(leak)
    add_tree(leak)
    add_exception(leak)
    add_probable(leak)
    add_unknown(leak)
    add_library(leak, 1)
    add_library(leak, 2)
    for i in range(1, 15):
        add_small(leak, i)
    for i in range(231):
        leak.data["collections"].append(
            {"iteration": 3 + i, "generation": 2 if i % 10 == 0 else 0,
             "duration_us": 31000 if i == 50 else 900 + i,
             "collected": 4000 + i, "device_bytes_freed": i * MIB})
    leak.data["lost"] = {"events": 0, "nodes": 1200,
                         "reason": "bound of 100000 objects per collection"}
    return leak


def cpu():
    leak = Leak("cpu", rank=None, world_size=None, torch="2.13.0+cpu")
    leak.data["devices"] = [{"name": "cpu", "total": 0, "allocated": 0,
                             "reserved": 0, "peak_allocated": 0,
                             "dead_peak": 8 * MIB,
                             "dead_peak_iteration": None}]
    add_tree(leak, 1)
    return leak


def nothing():
    leak = Leak()
    leak.data["devices"][0]["dead_peak"] = 0
    return leak


def hostile(text):
    """`text` in every place that the traced program chooses."""
    leak = Leak(text, host=text, torch=text)
    leak.data["lost"] = {"events": 1, "nodes": 2, "reason": text}
    site = leak.site(frame(text, 7, text, text),
                     frame(text, 9, text, text, library=True))
    owner = leak.vertex(text, type=text)
    other = leak.vertex("function " + text, "function", text)
    tensor = leak.tensor(text, MIB * 2, site)
    cut = leak.edge(owner, other, text, [
        frame(text, 3, text, text, text, text),
        frame(text, 4, text, text, certain=False)])
    leak.edge(other, owner, text)
    leak.edge(other, tensor, text)
    leak.cycle([owner, other], [tensor], "f000000000000001", cut=[cut],
               rule=text, advice=text, no_cut_reason=text,
               library={"package": text, "link": text})
    leak.cycle([owner, other], [tensor], "f000000000000002", count=7,
               rule=text, advice=text, no_cut_reason=text)
    return leak


def many(count, folded=False):
    """`count` cycles: different ones, or as many folded into five."""
    leak = Leak()
    kinds = 5 if folded else count
    for kind in range(kinds):
        node = leak.vertex(f"job.Node{kind}")
        link = leak.vertex(f"job.Link{kind}")
        tensor = leak.tensor("[64, 512]", 2 * MIB)
        leak.edge(node, link, ".link")
        cut = leak.edge(link, node, ".owner", [
            frame("/home/ada/job/many.py", kind + 1, "make",
                  "    link.owner = node", "def make():\n    node = Node()",
                  "    return node\n")])
        leak.edge(node, tensor, ".tensor")
        leak.cycle([node, link], [tensor], f"{kind + 1:06x}0000000000",
                   cut=[cut], count=count // kinds, rule="back_link",
                   advice=f"make Link{kind}.owner a weakref.ref, or set it "
                          "to None when done")
    return leak


def shape(edges, payload_at=0):
    """One cycle of the nodes 0..n that `edges` joins."""
    leak = Leak()
    count = 1 + max(max(edge) for edge in edges)
    nodes = [leak.vertex(f"job.Node{i}") for i in range(count)]
    ids = [leak.edge(nodes[tail], nodes[head], f".a{head}")
           for tail, head in edges]
    tensor = leak.tensor("[64, 512]", 2 * MIB)
    leak.edge(nodes[payload_at], tensor, ".tensor")
    leak.cycle(nodes, [tensor], "1000000000000001", cut=ids[-1:],
               rule="back_link", advice="break it")
    return leak


def ring(count):
    return shape([(i, (i + 1) % count) for i in range(count)])


def random_graph(count, degree=2):
    chooser = random.Random(count)
    back = [(i, (i + 1) % count) for i in range(count)]
    return shape([(i, chooser.randrange(count)) for i in range(count)
                  for _ in range(degree)] + back)


def hub(count):
    return shape([(0, i) for i in range(1, count)]
                 + [(i, 0) for i in range(1, count)])


def parallel(count):
    return shape([(0, 1)] * count + [(1, 0)] * count)


if __name__ == "__main__":
    maker = globals()[sys.argv[1]]
    print(maker(*(int(word) for word in sys.argv[2:])).json())
