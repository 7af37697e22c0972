# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""As test_holder_advice.py: rules that name the place by how the program came
to it: items of dicts, defaults, contexts, queues, modules, hooks.
"""

import asyncio
import collections
import contextvars
import gc
import queue
import threading
import types

import pytest

from test_holder_advice import Programs, check_advice
from test_holders import ask, watched  # noqa: F401

torch = pytest.importorskip("torch")
nn = torch.nn

program = Programs()
GLOBAL = types.SimpleNamespace()


# ---- names


class Recorder:
    def __init__(self):
        self.curves = {"train": {"loss": []}, "valid": {"loss": []}}

    def note(self, value):
        self.curves["train"]["loss"].append(value)


@program("graph of a kept scalar", "`self.curves['train']['loss'].append(value.item())`")
def curve_in_dicts():
    recorder, weight = Recorder(), nn.Parameter(torch.ones(()))
    for _ in range(9):
        recorder.note(weight * 2)
    return ask(list(recorder.curves["train"]["loss"]), depth=1)


@program("container grows", "clear rows[...]['pred']")
def records_of_one_batch():
    rows = [{"pred": [torch.zeros(4) for _ in range(9)]}]
    return ask(list(rows[0]["pred"]))


# ---- default arguments, contexts, threads


def moving_average(x, *, past=[]):
    past.append(x)
    return sum(past) / len(past)


@program("default argument", "`past=None`")
def default_of_a_keyword():
    moving_average.__kwdefaults__["past"].clear()
    for _ in range(7):
        moving_average(torch.zeros(4))
    return ask(list(moving_average.__kwdefaults__["past"]))


class Smoother:
    def smooth(self, key, x, factor=0.9, kept={}):
        kept.setdefault(key, []).append(x)


@program("default argument", "`kept=None`")
def default_of_a_method():
    Smoother.smooth.__defaults__[1].clear()
    for _ in range(7):
        Smoother().smooth("x", torch.zeros(4))
    return ask(list(Smoother.smooth.__defaults__[1]["x"]))


@program("container grows", "clear handlers")
def callbacks_with_defaults():
    handlers = []
    for _ in range(7):
        handlers.append(lambda event, batch=torch.zeros(4): batch)
    return ask([each.__defaults__[0] for each in handlers])


request_log = contextvars.ContextVar("request_log")


@program("context variable", "set request_log to less")
def tuple_in_a_context():
    request_log.set(())
    for _ in range(7):
        request_log.set(request_log.get() + (torch.zeros(4),))
    found = ask(list(request_log.get()))
    request_log.set(())
    return found


@program("context variable", "reset()")
def list_in_a_context():
    request_log.set([])
    for _ in range(7):
        request_log.get().append(torch.zeros(4))
    found = ask(list(request_log.get()))
    request_log.set(())
    return found


@program("container grows", "clear seen")
def object_in_a_context():
    request_log.set(types.SimpleNamespace(seen=[]))
    for _ in range(7):
        request_log.get().seen.append(torch.zeros(4))
    found = ask(list(request_log.get().seen))
    request_log.set(())
    return found


class Workspace(threading.local):
    def __init__(self):
        self.buffers = {}


@program("container grows", "clear buffers")
def buffers_of_a_thread():
    workspace = Workspace()
    for size in range(7):
        workspace.buffers[size] = torch.zeros(4)
    return ask(list(workspace.buffers.values()))


# ---- queues and deques


@program("queue not drained", "out of todo", "maxsize")
def queue_of_an_object():
    GLOBAL.todo = queue.LifoQueue()
    for _ in range(7):
        GLOBAL.todo.put(torch.zeros(4))
    found = ask(list(GLOBAL.todo.queue))
    GLOBAL.todo = None
    return found


@program("queue not drained", "maxsize")
def queue_of_coroutines():
    waiting = asyncio.Queue()
    for _ in range(7):
        waiting.put_nowait((torch.zeros(4), 3))
    return ask([each for each, _ in waiting._queue])


@program("container grows", "clear queue")
def queue_made_by_hand():
    class Queue:
        def __init__(self):
            self.queue = []

        def put(self, x):
            self.queue.append(x)

    todo = Queue()
    for _ in range(7):
        todo.put(torch.zeros(4))
    return ask(list(todo.queue))


@program("deque without a bound", "give recent a bound", "maxlen")
def deque_of_a_function():
    recent = collections.deque()
    for _ in range(30):
        recent.append((torch.zeros(4), 1.0))
    return ask([each for each, _ in recent])


@program("deque without a bound", "give history['x'] a bound")
def deque_by_name():
    history = collections.defaultdict(collections.deque)
    for _ in range(30):
        history["x"].append(torch.zeros(4))
    return ask(list(history["x"]))


# ---- modules


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential()

    def deepen(self):
        self.blocks.append(nn.Linear(2, 2))


@program("modules pile up", "modules of blocks once")
def blocks_added():
    net = Growing()
    for _ in range(7):
        net.deepen()
    return ask([block.weight for block in net.blocks])


@program("modules pile up", "remove (`del`)")
def modules_by_name():
    heads = nn.ModuleDict()
    for task in "abcdefg":
        heads[task] = nn.Linear(2, 2)
    return ask([heads[task].weight for task in "abcdefg"])


@program("container grows", "clear models")
def models_in_a_list():
    models = [nn.Linear(2, 2) for _ in range(7)]
    return ask([each.weight for each in models])


# ---- hooks that keep their tensor


def tensors_of(size):
    return [each for each in gc.get_objects() if type(each) is torch.Tensor and each.shape == (size,)]


def watch_gradient(weight):
    activation = weight * 2
    activation.register_hook(lambda grad: grad * activation.detach())


@program("hook captures its tensor", "capture activation.detach()", "handle.remove()")
def hooks_of_activations():
    weight = torch.zeros(271, requires_grad=True)
    for _ in range(6):
        watch_gradient(weight)
    return ask([each for each in tensors_of(271) if each is not weight])


@program("hook captures its tensor", "weakref.ref(out)")
def hook_of_an_output():
    def probe(weight):
        out = weight.exp()

        def clip(grad):
            return grad if out.requires_grad else None

        out.register_hook(clip)

    weight = torch.zeros(277, requires_grad=True)
    probe(weight)
    return ask([each for each in tensors_of(277) if each is not weight])


@program("container grows", "clear outs")
def hooks_of_kept_tensors():
    weight, outs = torch.zeros(281, requires_grad=True), []
    for _ in range(6):
        outs.append(weight * 2)
        outs[-1].register_hook(lambda grad, size=outs[-1].numel(): grad / size)
    return ask(list(outs))


@pytest.mark.parametrize("function, rule, words", program)
def test_advice(function, rule, words):
    check_advice(function, rule, words)
