# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Memory of the host: what torch's default CPU allocator gives out, heard while it counts."""

from process import NODES, run_ok

START = NODES + """
def host():
    return cumem.status()["allocator_hook"]["host"]

def live():
    return host()["live_blocks"], host()["live_bytes"]

def held(page):
    sites = {site["id"]: site for site in page.report["sites"]}
    found = {}
    for item in page.report.get("held", []):
        site = sites.get(item.get("site"))
        line = site["frames"][site["user_frame"]]["source"].strip() if site else ""
        bytes, count = found.get(line, (0, 0))
        found[line] = bytes + item["bytes"], count + item["count"]
        assert item["device"] == "cpu" and item["framework"] == "torch", item
    return found

KIB = 1024
"""


def test_it_is_heard_while_somebody_observes(tmp_path):
    run_ok(START + """
keep = torch.zeros(KIB)
assert host()["hook"] == "none" and host()["allocations"] == 0
with cumem.observe_tensor_cycles(print):
    assert host()["hook"] == "host slot", host()
    del keep  # what was there before is nobody's trouble
    a = torch.zeros(KIB)
    assert live() == (1, 4 * KIB), host()
    b = torch.empty(3, 1000, 1000)
    assert live() == (2, 4 * KIB + 12_000_000)
    c = b[1:].view(-1)
    del b
    assert live()[0] == 2
    del a, c
    assert live() == (0, 0)
    status = cumem.status()["allocator_hook"]
    assert status["unknown_frees"] == status["lost"] == 0, status
    a = torch.zeros(KIB)
assert host()["hook"] == "none" and host()["why"] == "nobody observes" and live() == (0, 0)
before = host()["allocations"]
b = torch.zeros(KIB)
assert host()["allocations"] == before
with cumem.observe_tensor_cycles(print):
    del a, b
    assert live() == (0, 0) and cumem.status()["allocator_hook"]["unknown_frees"] == 0
""", cwd=tmp_path)


def test_only_while_memory_of_the_host_counts(tmp_path):
    run_ok(START + """
from cumem import _core
with cumem.observe_tensor_cycles(print, devices="cuda"):
    assert host()["hook"] == "none" and "does not count" in host()["why"], host()
with cumem.observe_tensor_cycles(print, devices=["cuda", "cpu"]):
    assert host()["hook"] == "host slot"
    keep = torch.zeros(KIB)
    cumem.find_cycles(devices="cuda:0")  # one question of another device changes nothing
    assert host()["hook"] == "host slot" and live()[0] == 1, host()
with cumem.observe_tensor_cycles(print):
    keep = torch.zeros(KIB)
    assert live()[0] == 1
    _core.accelerator()  # as when a device is initialised
    gc.collect()
    assert host()["hook"] == "none" and live() == (0, 0), host()
""", cwd=tmp_path)


def test_small_ones_are_counted_only(tmp_path):
    run_ok(START + """
with cumem.observe_tensor_cycles(print):
    before = host()["small"]
    many = [torch.zeros(KIB - 1) for _ in range(100)]
    assert host()["small"] == before + 100 and live() == (0, 0), host()
    del many
    assert cumem.status()["allocator_hook"]["unknown_frees"] == 0
""", cwd=tmp_path)


def test_what_cpp_alone_holds_by_line(tmp_path):
    (tmp_path / "main.py").write_text(START + """
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
x = torch.randn(64, 256)
losses = []
with cumem.observe_tensor_cycles(print):
    assert held(cumem.find_cycles()) == {}
    for _ in range(5):
        losses.append(model(x).mean())  # the line
    activations = 64 * 256 * 4
    assert held(cumem.find_cycles()) == {
        "losses.append(model(x).mean())  # the line": (5 * activations, 5)}, held(cumem.find_cycles())
    page = cumem.find_cycles()
    table = page[page.index('id="memory"'):page.index("<footer>")]
    assert "<h3>cpu</h3>" in table and "Held by C++ alone" in table and "losses.append" in table, table
    assert "<dd>host slot</dd>" in page and page.report["allocator_hook"] == "host slot"
    assert "\\nmemory cpu\\n   held  320 KiB by C++ alone: main.py" in page.text, page.text
    del losses[:3]
    found = held(cumem.find_cycles())
    assert list(found.values()) == [(2 * activations, 2)], found
    hidden = model[0](x)
    output = hidden.relu()
    found = held(cumem.find_cycles())  # both have a name in Python
    assert list(found.values()) == [(2 * activations, 2)], found
    del hidden, output, losses
    assert held(cumem.find_cycles()) == {}
    assert cumem.find_cycles().text.startswith("cumem: no dead cycle")
""")
    run_ok("import runpy; runpy.run_path('main.py')", cwd=tmp_path)


def test_storages_carry_their_block(tmp_path):
    run_ok(START + """
def allocate():
    return torch.zeros(8 * KIB)  # the line

reports = []
with cumem.observe_tensor_cycles(lambda html: reports.append(html.report)):
    base = allocate()
    node = Node(base[1024:])
    node.link = node
    del base, node
    gc.collect()
report, = reports
storage, = report["storages"]
assert storage["block_bytes"] == storage["bytes"] == 32 * KIB and storage["device"] == "cpu", storage
site = next(s for s in report["sites"] if s["id"] == storage["site"])
frame = site["frames"][site["user_frame"]]
assert frame["name"] == "allocate", frame
""", cwd=tmp_path)


def test_the_exception_of_an_allocation_is_the_programs(tmp_path):
    run_ok(START + """
def fail():
    try:
        torch.empty(1 << 60, dtype=torch.uint8)
    except RuntimeError as error:
        return str(error)
plain = fail()
assert "DefaultCPUAllocator" in plain, plain
with cumem.observe_tensor_cycles(print):
    for _ in range(100):
        assert fail() == plain
    keep = torch.zeros(KIB)
    assert live()[0] == 1
""", cwd=tmp_path)


def test_threads(tmp_path):
    run_ok(START + """
import random, threading
gc.set_threshold(1)
kept = [None] * 8
def churn(number):
    rng, mine = random.Random(number), []
    for _ in range(2000):
        size = rng.choice((1, 100, KIB, 3 * KIB, 10 * KIB, 100 * KIB))
        mine.append(torch.empty(size))
        if len(mine) > 20:
            mine[rng.randrange(20)] = mine[rng.randrange(20)] + 1
            del mine[rng.randrange(20)]
    kept[number] = mine
with cumem.observe_tensor_cycles(print):
    threads = [threading.Thread(target=churn, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sizes = {t.data_ptr(): t.untyped_storage().nbytes() for mine in kept for t in mine}
    large = [size for size in sizes.values() if size >= 4 * KIB]
    assert live() == (len(large), sum(large)), (live(), len(large), sum(large))
    status = cumem.status()["allocator_hook"]
    assert status["unknown_frees"] == status["lost"] == 0, status
""", cwd=tmp_path)


def test_a_forked_child_is_silent(tmp_path):
    run_ok(START + """
with cumem.observe_tensor_cycles(print):
    keep = torch.zeros(KIB)
    before = host()["allocations"]
    child = os.fork()
    if child == 0:
        other = torch.zeros(KIB)
        del other
        silent = host()["hook"] == "none" and "silent" in host()["why"]
        os._exit(0 if silent and host()["allocations"] == before else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert live()[0] == 1
""", cwd=tmp_path)


def test_without_stacks_there_are_blocks_all_the_same(tmp_path):
    run_ok(START + """
x = torch.randn(64, 64, requires_grad=True)
with cumem.observe_tensor_cycles(print):
    loss = x.exp().sum()
    page = cumem.find_cycles()
    assert held(page) == {"": (16 * KIB, 1)}, page.report.get("held")
""", cwd=tmp_path, CUMEM_STACKS=0)


def test_a_process_of_a_data_loader_is_left_alone(tmp_path):
    (tmp_path / "main.py").write_text(START.replace("import gc", "import multiprocessing, gc") + """
def work(queue):
    with cumem.observe_tensor_cycles(print):
        queue.put(host()["hook"])

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    assert queue.get() == "none"
    process.join()
""")
    run_ok("import runpy; runpy.run_path('main.py', run_name='__main__')", cwd=tmp_path,
           PYTHONPATH=tmp_path)


def test_a_step_in_python_in_a_thread_of_autograds_is_told_whole(tmp_path):
    """Such as those of compiled code; here a thread that autograd begins for a deep nesting."""
    run_ok(NODES + """
import threading
from cumem import _core
handle = cumem.warn_tensor_cycles()
for _ in range(6):
    torch.ones(4096, requires_grad=True).square().sum().backward()
main, kept = threading.get_native_id(), []

class Deeper(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        kept.append((threading.get_native_id(), torch.zeros(5000)))
        if ctx.depth:
            with torch.enable_grad():
                Deeper.apply(torch.ones(4, requires_grad=True), ctx.depth - 1).sum().backward()
        return gradient, None

def waits():
    Deeper.apply(torch.ones(4, requires_grad=True), 75).sum().backward()

waits()
blocks = {block[0]: block for block in _core.blocks()}
other = [blocks[tensor.data_ptr()] for thread, tensor in kept if thread != main]
assert other and other[0][5], other[:1]
names = [name for _, _, name in other[0][6]]
own = names.index("BackwardCFunction.apply") + 1  # nobody calls it in its own thread
assert names[0] == "Deeper.backward" and own == 2 and "_engine_run_backward" in names[own:], names
assert not any(blocks[tensor.data_ptr()][5] for thread, tensor in kept if thread == main)
""", cwd=tmp_path)


def test_a_backward_pass_its_hooks_and_what_follows_have_stacks_of_their_own(tmp_path):
    run_ok(NODES + """
from cumem import _core
handle = cumem.warn_tensor_cycles()
kept, engine = [], torch.autograd.Variable._execution_engine

def hook(gradient):
    kept.append(torch.zeros(5000))
    return gradient * 2

def passes(x):
    hidden = x * 2
    hidden.register_hook(hook)
    engine.run_backward((hidden.sum(),), (torch.ones(()),), False, False, (),
                        allow_unreachable=True, accumulate_grad=True)
    return x.grad, kept[-1], torch.zeros(5000)

def within(x):
    class Twice(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: x.clone())

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                kept.extend(passes(torch.ones(5000, requires_grad=True)))
            return gradient
    return Twice.apply(x).sum().backward()

def names(tensor):
    stack, = (block[6] for block in _core.blocks() if block[0] == tensor.data_ptr())
    return [name for _, _, name in stack], [line for _, line, _ in stack]

for _ in range(3):
    (of_pass, lines), (of_hook, _), (after, later) = map(
        names, passes(torch.ones(5000, requires_grad=True)))
    assert of_pass[0] == after[0] == "passes" and of_pass == after, of_pass
    assert of_hook[:2] == ["hook", "passes"] and lines[0] < later[0], of_hook
within(torch.ones(5000, requires_grad=True))
found = [names(tensor)[0] for tensor in kept[-3:]]
assert [stack[0] for stack in found] == ["passes", "hook", "passes"], found
assert all("Twice.backward" in stack[-12:] or "within.<locals>.Twice.backward" in stack
           for stack in found), found
""", cwd=tmp_path)
