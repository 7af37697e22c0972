# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A program's own code is not run by us, nor compiled, nor waited for."""

from process import NODES, run, run_ok

TRAINED = NODES + """
def trained(make=torch.optim.Adam):
    model = torch.nn.Linear(8, 8)
    return model, make(model.parameters(), lr=0.1)

def train(model, optimizer, count, step=None):
    for _ in range(count):
        model(torch.ones(4, 8)).sum().backward()
        (step or optimizer.step)()
        optimizer.zero_grad()
"""


def test_a_compiled_step_is_compiled_as_without_us(tmp_path):
    """One frame more, which Dynamo skips: no graph break, and no warning, which may be an error."""
    run_ok(TRAINED + """
import warnings
from torch._dynamo.utils import counters
warnings.simplefilter("error", UserWarning)

def compiled():
    torch._dynamo.reset()
    counters.clear()
    model, optimizer = trained()
    train(model, optimizer, 6, torch.compile(lambda: optimizer.step(), backend="eager"))
    return counters["frames"]["total"], counters["frames"]["ok"], sum(counters["graph_break"].values())

frames, *others = compiled()
with cumem.watch("a.json", devices="cpu"):
    assert compiled() == (frames + 1, *others), (frames, others, counters)
    torch.compile(lambda x: (x, cumem.step()), backend="eager")(torch.ones(1))
""", cwd=tmp_path)


def test_an_observer_may_wait_for_a_thread_that_takes_a_handle_back(tmp_path):
    """When a signal asks, and at exit."""
    done = run_ok(NODES + """
import queue, signal, threading
signal.alarm(60)  # who waits for ever is ended
gc.disable()
jobs = queue.Queue()
def work():
    while True:
        handle, done = jobs.get()
        handle.remove()
        done.set()
threading.Thread(target=work, daemon=True).start()
def observe(page):
    done = threading.Event()
    jobs.put((cumem.observe_tensor_cycles(print), done))
    done.wait()
    print("told", flush=True)
handles = cumem.warn_tensor_cycles(devices="cpu"), cumem.observe_tensor_cycles(observe, devices="cpu")
make_pair()
os.kill(os.getpid(), signal.SIGUSR2)
while not cumem.status()["signal"]["answered"]:
    pass
make_pair()
print("end", flush=True)
""", cwd=tmp_path, CUMEM_SIGNAL="USR2")
    assert done.lines == ["told", "end", "told"], done


def test_no_code_of_an_optimizers_class_or_state_runs(tmp_path):
    """torch asks for the class's name too."""
    done = run_ok(TRAINED + """
import weakref
def asked():
    by = sys._getframe(2).f_globals["__name__"]
    if by.startswith("cumem"):
        print(by, flush=True)
class Meta(type):
    @property
    def __name__(cls):
        asked()
        return "Named"
class Named(torch.optim.SGD, metaclass=Meta):
    pass
class Odd:
    @property
    def __class__(self):
        asked()
        return dict
with cumem.watch("a.json", devices="cpu"):
    model, optimizer = trained(Named)
    optimizer.state[model.weight] = Odd()
    train(model, optimizer, 4)
    held = Node()
    optimizer.state[model.weight] = weakref.proxy(held)
    del held
    train(model, optimizer, 20)
    cumem.growth()
""", cwd=tmp_path)
    assert (done.out, done.err) == ("", ""), done


def test_no_import_of_ours_in_the_midst_of_a_run(tmp_path):
    """Of a program whose `__import__` is its own; until after all is told at exit."""
    done = run(TRAINED + """
import atexit, builtins
kept, seen, plain = [], [], builtins.__import__
def imported(name, names=None, *rest, **more):
    if name == "gc" or name.startswith("cumem") or (names or {}).get("__name__", "").startswith("cumem"):
        seen.append(name)
    return plain(name, names, *rest, **more)
atexit.register(lambda: print("imported", seen))
import cumem._start
cumem._start.main()
builtins.__import__ = imported  # what the program asks for itself may import
model, optimizer = trained()
for _ in range(15):
    kept.append(torch.ones(1 << 18))
    train(model, optimizer, 1)
make_pair()
gc.collect()
def main():
    torch.empty(1 << 50)
main()
""", cwd=tmp_path, CUMEM_DEVICES="cpu", CUMEM_MIN_BYTES=0)
    assert done.out == "imported []\n" and "memory ran out" in done.err, done


def test_what_is_probed_lies_on_the_cpu(tmp_path):
    """Whatever the program's default is: a CUDA tensor would initialise the device."""
    run_ok(NODES + """
plain, devices = torch.ones, []
def ones(*sizes, **more):
    devices.append(more.get("device"))
    return plain(*sizes, **more)
torch.ones = ones
with cumem.observe_tensor_cycles(print, devices="cpu"):
    assert set(devices) == {"cpu"}, devices
""", cwd=tmp_path)
