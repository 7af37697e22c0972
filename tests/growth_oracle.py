# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What the growth samples really do, seen without cumem.

A dispatch mode hears of every storage that torch makes on the CPU, and the
line of the program that made it; weak references say which are alive after
each optimizer step, and which at the forward pass after it.  So the expected
lines and sizes are held by the programs, not by the detector.  `python
tests/growth_oracle.py [NAME...]` prints the table.
"""

import json
import os
import runpy
import subprocess
import sys
import tempfile
import weakref
from concurrent.futures import ThreadPoolExecutor

import growth_case as case
from process import environment

MIB = 1 << 20
SWEEP = 5  # so many models, trained one after the other, are trials


class Observer:
    """Live bytes by line, at each step and at the first forward after it."""

    def __init__(self, path):
        self.path = str(path)
        self.storages = {}
        self.parameters = weakref.WeakValueDictionary()
        self.steps, self.forwards, self.gradients, self.resident = [], [], [], []
        self.first_parameters, self.trained = [], []
        self.all_forwards = []
        self.stepped = False

    def line(self):
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.path:
            frame = frame.f_back
        if frame is None:
            return "outside"
        return f"{os.path.basename(self.path)}:{frame.f_lineno} {frame.f_code.co_name}"

    def see(self, tensor):
        from torch.multiprocessing.reductions import StorageWeakRef
        storage = tensor.untyped_storage()
        if storage.nbytes() == 0:
            return
        known = self.storages.get(storage._cdata)
        if known is None or known[0].expired():
            self.storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes(), self.line())

    def live(self):
        self.storages = {key: one for key, one in self.storages.items() if not one[0].expired()}
        sums = {}
        for _, size, line in self.storages.values():
            sums[line] = sums.get(line, 0) + size
        return sums

    def number_of(self, parameter):
        """Its own, also where an earlier one had its address."""
        for number, known in enumerate(self.first_parameters):
            if known() is parameter:
                return number
        self.first_parameters.append(weakref.ref(parameter))
        return len(self.first_parameters) - 1

    def step(self, optimizer, args, kwargs):
        self.trained.append(self.number_of(optimizer.param_groups[0]["params"][0]))
        for group in optimizer.param_groups:
            self.parameters.update((id(p), p) for p in group["params"])
        self.steps.append(self.live())
        with open("/proc/self/statm") as file:
            self.resident.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        self.stepped = True

    def forward(self, module, args):
        if not self.steps:
            self.all_forwards.append(self.live())
        if not self.stepped:
            return
        self.stepped = False
        self.forwards.append(self.live())
        grads = [p.grad for p in self.parameters.values() if p.grad is not None]
        self.gradients.append(sum(g.untyped_storage().nbytes() for g in grads))


def observe(path):
    """Run the program in this process."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    self = Observer(path)

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self_, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            for leaf in tree_leaves(out):
                if isinstance(leaf, torch.Tensor):
                    self.see(leaf)
            return out

    register_optimizer_step_post_hook(self.step)
    torch.nn.modules.module.register_module_forward_pre_hook(self.forward)
    with Mode():
        runpy.run_path(self.path, run_name="__main__")
    return {"steps": iterations(self.steps, self.trained) or self.all_forwards,
            "forwards": self.forwards,
            "gradients": self.gradients, "resident": self.resident}


def iterations(steps, trained):
    """A step is one; of a sweep, whose models are trained one after the other, the last step of
    each trial."""
    ends = [number for number, of_next in enumerate(trained[1:] + [None])
            if trained[number:number + 1] != [of_next]]
    is_sweep = len(ends) == len(set(trained)) >= SWEEP
    return [steps[number] for number in ends] if is_sweep else steps


CHILDREN = """
import json, os, sys, traceback
import torch
import torch.utils.checkpoint, torch.utils.data
import growth_oracle

# What torch imports at first use; no thread is started before the forks.
weight = torch.nn.Parameter(torch.zeros(1))
torch.optim.Adam([weight]).step()
import torch.utils._python_dispatch, torch._dynamo

for number, path in enumerate(sys.argv[1:]):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(f"{number}.out", os.O_CREAT | os.O_WRONLY), 1)
            seen = growth_oracle.observe(path)
            sys.stdout.flush()
            json.dump(seen, open(f"{number}.json", "w"))
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise SystemExit(f"{path} failed")
"""


def observe_some(paths):
    """In children of one process that has torch; it never sees a GPU."""
    here = os.path.dirname(os.path.abspath(__file__))
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", CHILDREN, *map(str, paths)], cwd=folder, check=True,
                       env=environment(PYTHONPATH=here, OMP_NUM_THREADS=1, CUDA_VISIBLE_DEVICES=""))
        for number in range(len(paths)):
            with open(os.path.join(folder, f"{number}.json")) as file:
                seen.append(json.load(file))
            with open(os.path.join(folder, f"{number}.out")) as file:
                seen[-1]["output"] = file.read()
    return seen


def observe_all(paths):
    """{path: what was seen}."""
    shares = [paths[i::os.cpu_count()] for i in range(os.cpu_count())]
    with ThreadPoolExecutor() as pool:
        results = pool.map(observe_some, shares)
        return {path: one for share, seen in zip(shares, results)
                for path, one in zip(share, seen)}


def rates(steps):
    """Bytes an iteration by line: the highest of the last quarter of the run
    beside that of the quarter before."""
    quarter = len(steps) // 4
    before, after = steps[-2 * quarter:-quarter], steps[-quarter:]
    lines = {line for step in before + after for line in step}

    def peak(part, line):
        return max(step.get(line, 0) for step in part)

    return {line: (peak(after, line) - peak(before, line)) / quarter for line in lines}


def problems_of(findings, seen):
    """Where the program does not do what its expectations say."""
    grows = rates(seen["steps"])
    claimed = set()
    for finding in findings:
        lines = finding.get("alloc", [])
        if finding["verdict"] == "leak":
            claimed.update(lines)
            limits = finding.get("bytes_per_iteration", [case.TOLD_BYTES // 2, 1 << 40])
            rate = sum(grows.get(line, 0) for line in lines)
            if not case.within(rate, limits):
                yield f"{lines} grow by {rate:.0f} bytes per iteration, not {limits}"
        if finding["verdict"] == "lingering":
            stays = [sum(step.get(line, 0) for line in lines) for step in seen["forwards"]]
            if min(stays) < finding["bytes"][0]:
                yield f"{min(stays)} bytes of {lines} stay until the next forward"
    for line, rate in grows.items():
        if line not in claimed and rate * len(seen["steps"]) >= case.TOLD_BYTES:
            yield f"{line} grows by {rate:.0f} bytes per iteration"
    lingers = any(one.get("category") == "gradient" and one["verdict"] == "lingering"
                  for one in findings)
    held = min(seen["gradients"], default=0)
    if not lingers and max(seen["gradients"], default=0) >= case.TOLD_BYTES:
        yield f"{max(seen['gradients'])} bytes of gradients at a forward pass"
    if lingers and held < case.TOLD_BYTES:
        yield f"only {held} bytes of gradients at the forward passes"


def row(name, findings, seen):
    """A line of the table: MiB at a third of the run and at its end."""
    totals = [sum(step.values()) / MIB for step in seen["steps"]]
    third = len(totals) // 3
    kinds = "+".join(sorted({one["verdict"] for one in findings})) or "-"
    grows = sum(rate for rate in rates(seen["steps"]).values()) / MIB
    grads = max(seen["gradients"], default=0) / MIB
    memory = [value / MIB for value in seen["resident"]] or [0, 0]
    return (f"{name:34} {kinds:15} {len(totals):4} {totals[third]:7.1f} {totals[-1]:7.1f} "
            f"{grows:7.2f} {grads:7.1f} {memory[len(memory) // 3]:7.0f} {memory[-1]:7.0f}")


HEAD = (f"{'program':34} {'expected':15} {'its':>4} {'1/3':>7} {'end':>7} {'+/it':>7} "
        f"{'grads':>7} {'RSS 1/3':>7} {'RSS end':>7}")


def main(chosen):
    programs = case.programs_on_cpu(chosen)
    seen = observe_all([path for _, path, _ in programs])
    bad = 0
    print(HEAD)
    for label, path, findings in programs:
        print(row(label, findings, seen[path]))
        for problem in problems_of(findings, seen[path]):
            print("    !", problem)
            bad += 1
    print(f"{len(programs)} programs, {bad} do not do what is expected of them")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
