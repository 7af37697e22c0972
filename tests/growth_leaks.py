# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""leak.json documents of jobs whose memory grows.

    python3 tests/growth_leaks.py job > leak.json
"""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import page_leaks  # noqa: E402
from page_leaks import GIB, MIB, TORCH, frame  # noqa: E402

CATEGORIES = ["parameter", "gradient", "optimizer state", "saved for backward", "input",
              "other", "outside the frameworks"]
JOB = "/home/ada/job/"


def growth(leak, verdict, category, size, *, site=None, **more):
    row = {
        "fingerprint": f"{len(leak.data['growth']) + 1:06x}0000000000",
        "site": site, "category": category, "device": leak.device,
        "verdict": verdict, "holder": [], "made_at": [],
        "bytes_per_iteration": 0, "count_per_iteration": 0,
        "since_iteration": None, "bytes": size, "count": 1,
        "peak_bytes": size, "confidence": 0.9, "iterations_to_full": None,
        "seconds_to_full": None, "series": [], "autograd_depth": 0,
        "names": [], "rule": "", "advice": "", "library": None}
    row.update(more)
    leak.data["growth"].append(row)


def holder(*steps):
    return [{"annotation": name, "edge": edge} for name, edge in steps]


def line(count, since, each, step=1):
    """A series: iteration, count, bytes."""
    return [[i, max(0, i - since), max(0, i - since) * each]
            for i in range(0, count, step)]


def timeline(count, *, points=2000, by="optimizer", leak=4 * MIB, since=3,
             name="cuda:0", scale=1.0):
    """A training run: warm-up, waves of activations, evaluation phases."""
    rows = []
    every = max(1, count // points)
    for i in range(0, count, every):
        evaluates = i % 500 >= 440
        wave = 0.5 + 0.5 * math.sin(i * 0.7)
        bytes_ = [97 * MIB, 0 if evaluates else 97 * MIB,
                  0 if i == 0 else 194 * MIB,
                  (300 * MIB if evaluates else int((1100 + 160 * wave) * MIB))
                 + max(0, i - since) * leak,
                 37 * MIB + (i % 3) * MIB, 60 * MIB, 512 * MIB]
        rows.append([i, round(i * 0.0316, 3)]
                    + [int(value * scale) for value in bytes_])
    return {"by": by, "devices": [
        {"name": name, "categories": list(CATEGORIES), "points": rows[:points]}]}


def add_losses(leak, count, each=4 * MIB):
    site = leak.site(
        frame(TORCH + "nn/functional.py", 3462, "cross_entropy",
              library=True),
        frame(JOB + "train.py", 41, "step",
              "    loss = criterion(model(batch), target)",
              "    batch, target = batch.cuda(), target.cuda()\n"
              "    optimizer.zero_grad()",
              "    loss.backward()\n    optimizer.step()"),
        frame(JOB + "train.py", 79, "main",
              "        loss = step(model, batch)"))
    now = (count - 3) * each
    growth(leak, "leak", "saved for backward", now, site=site, count=count - 3,
           fingerprint="7d3a9e0000000001",
           holder=holder(("train.py:80 main", ""),
                         (f"list of {count - 3}", "local losses"),
                         ("loss", "[0]"), ("grad_fn", "")),
           holder_at=1, retained_bytes=now,
           made_at=[frame(JOB + "train.py", 80, "main",
                          "        losses.append(loss)",
                          "    for batch in loader:\n"
                          "        loss = step(model, batch)",
                          "    print(sum(losses) / len(losses))\n")],
           bytes_per_iteration=each, count_per_iteration=1,
           since_iteration=3, confidence=0.998, iterations_to_full=1948,
           seconds_to_full=3247, series=line(count, 3, each, max(1, count // 250)),
           autograd_depth=17, names=["losses[0]", "losses[1]"],
           rule="list_of_losses", advice="append `loss.item()` instead: a "
           "loss keeps its whole graph")


def add_gradients(leak, count):
    site = leak.site(
        frame(TORCH + "autograd/graph.py", 841, "_engine_run_backward",
              library=True),
        frame(TORCH + "_tensor.py", 648, "Tensor.backward", library=True),
        frame(JOB + "train.py", 42, "step", "    loss.backward()"))
    growth(leak, "lingering", "gradient", 97 * MIB, site=site, awaited=True,
           fingerprint="19c4d20000000002", count=161, since_iteration=1,
           holder=holder(("train.py:60 main", ""), ("ResNet", "local model"),
                         ("Sequential", ".layer1"),
                         ("Parameter", ".0.conv1.weight"),
                         ("Tensor", ".grad")),
           made_at=[frame(JOB + "train.py", 60, "main",
                          "    model = resnet50().cuda()",
                          "def main():\n    loader = make_loader()",
                          "    optimizer = Adam(model.parameters())\n",
                          certain=False)],
           names=["layer1.0.conv1.weight.grad", "layer1.0.bn1.weight.grad",
                  "fc.weight.grad"], rule="gradients_kept",
           advice="call `optimizer.zero_grad(set_to_none=True)` before the "
                  "forward pass",
           series=[[i, 161, 0 if i % 500 >= 440 else 97 * MIB]
                   for i in range(0, count, max(1, count // 200))])


def add_others(leak, count):
    cache = leak.site(frame(JOB + "model.py", 88, "Encoder.forward",
                            "        self.cache[key] = x.detach()"))
    growth(leak, "growing", "other", 40 * MIB, site=cache,
           bytes_per_iteration=1.0 * MIB, since_iteration=count - 40,
           confidence=0.61, series=line(count, count - 40, MIB,
                                        max(1, count // 200)),
           holder=holder(("module job.model", ""), ("Encoder", ".encoder"),
                         ("dict of 40", ".cache"), ("Tensor", "['k12']")))
    adam = leak.site(
        frame(TORCH + "optim/adam.py", 175, "Adam._init_group",
              library=True),
        frame(JOB + "train.py", 43, "step", "    optimizer.step()"))
    growth(leak, "settled", "optimizer state", 194 * MIB, site=adam, count=322,
           since_iteration=1, series=[[0, 0, 0], [1, 322, 194 * MIB],
                                      [count, 322, 194 * MIB]],
           names=["Adam.layer1.0.conv1.weight.exp_avg"])
    model = leak.site(frame(JOB + "train.py", 60, "main",
                            "    model = resnet50().cuda()"))
    growth(leak, "ok", "parameter", 97 * MIB, site=model, count=161,
           series=[[0, 161, 97 * MIB], [count, 161, 97 * MIB]])


def add_collections(leak, count, freed=0):
    for i in range(200):
        leak.data["collections"].append(
            {"iteration": i * count // 200, "generation": 2 if i % 9 == 0
             else 0, "duration_us": 31000 + 90 * i if i % 9 == 0 else 700 + i,
             "collected": 400 + i, "device_bytes_freed": freed * (i % 4)})
    leak.data["collector"] = {
        "seen": 4011, "duration_us": 9120000, "longest_us": 48910,
        "collected": 80200, "device_bytes_freed": freed * 300}
    leak.data["looks"] = {
        "count": 3, "duration_us": 41000, "longest_us": 20000, "skipped": 4,
        "collections": 0, "saved_bytes": 0, "growth_count": 2,
        "growth_duration_us": 500000, "run_us": 130000000}


def job(count=1000):
    """A leak, gradients that linger, a cache that may grow, no cycle."""
    leak = page_leaks.Leak(iteration=count)
    leak.data["devices"][0].update(dead_peak=0, dead_peak_iteration=None,
                                   peak_allocated=6 * GIB,
                                   allocated=6 * GIB, reserved=7 * GIB)
    add_losses(leak, count)
    add_gradients(leak, count)
    add_others(leak, count)
    add_collections(leak, count)
    leak.data["timeline"] = timeline(count)
    return leak


def both(count=1000):
    """The same beside a dead cycle, and a second device."""
    leak = job(count)
    page_leaks.add_trainer(leak)
    leak.data["devices"][0].update(dead_peak=int(5.1 * GIB),
                                   dead_peak_iteration=412,
                                   peak_allocated=int(71.4 * GIB))
    leak.data["timeline"]["devices"] += timeline(
        count, name="cuda:1", leak=0)["devices"]
    leak.data["collections"] = []
    add_collections(leak, count, 16 * MIB)
    return leak


def slices(count=300):
    """No iteration was seen."""
    leak = job(count)
    leak.data["timeline"]["by"] = "time"
    return leak


def served(count=300, trained=40):
    """A leak of serving, after training which kept its gradients."""
    leak = page_leaks.Leak(iteration=count)
    leak.data["devices"][0].update(dead_peak=0, dead_peak_iteration=None,
                                   peak_allocated=6 * GIB,
                                   allocated=6 * GIB, reserved=7 * GIB)
    add_losses(leak, count)
    leak.data["growth"][0].update(since_iteration=trained + 5)
    add_gradients(leak, count)
    leak.data["growth"][1].update(since_iteration=1)
    leak.data["timeline"] = timeline(count, since=trained + 5)
    leak.data["timeline"]["slices_since"] = trained + 1
    return leak


def many(iterations=10000, sites=5000):
    """What a process never writes, but a file may have."""
    leak = job(iterations)
    verdicts = ["ok"] * 6 + ["settled"] * 2 + ["leak", "lingering"]
    for i in range(sites):
        verdict = verdicts[i % 10]
        site = leak.site(frame(f"{JOB}part{i % 40}.py", i, f"make{i}",
                               f"    x{i} = torch.zeros(n, device='cuda')"))
        each = 1000 * (i + 1)
        growth(leak, verdict, CATEGORIES[i % 7], each * iterations, site=site,
               bytes_per_iteration=each if verdict == "leak" else 0,
               since_iteration=i % 100,
               series=line(iterations, i % 100, each, iterations // 100),
               holder=holder(("module job", ""), ("list of 9", f".kept{i}"),
                             ("Tensor", "[0]")),
               advice=f"clear kept{i} at the end of each iteration")
    leak.data["timeline"] = timeline(iterations, points=iterations)
    return leak


def hostile(text):
    """`text` in every place that the traced program chooses."""
    leak = page_leaks.Leak(text, host=text)
    site = leak.site(frame(text, 7, text, text))
    for verdict in ("leak", "lingering", "growing", "settled"):
        growth(leak, verdict, text, 5 * MIB, site=site, device=text,
               holder=holder((text, text), (text, text)),
               made_at=[frame(text, 3, text, text, text, text)],
               bytes_per_iteration=MIB, names=[text, text], rule=text,
               advice=text, series=line(9, 1, MIB),
               library={"package": text, "link": text}
               if verdict == "lingering" else None)
    leak.data["timeline"] = timeline(20, name=text)
    leak.data["timeline"]["devices"][0]["categories"] = [text] * 7
    return leak


if __name__ == "__main__":
    maker = globals()[sys.argv[1]]
    print(maker(*(int(word) for word in sys.argv[2:])).json())
