# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Programs that end no iteration: slices of time stand for them, and what is said at the end."""

import json

from process import NODES, run_ok

SERVING = NODES + """
import time
def serve(keep, slices, each=0.05):
    for tick in range(round(slices * 0.1 / each)):
        until = time.monotonic() + each
        keep(torch.zeros(1 << 18))
        while time.monotonic() < until:
            torch.zeros(1 << 18)
            time.sleep(0.002)
def timeline():
    (device,) = json.loads(cumem._core.document())["timeline"]["devices"]
    return [point[0] for point in device["points"]]
"""


def test_slices_of_time_stand_for_iterations(tmp_path):
    run_ok(SERVING + """
gc.disable()
with cumem.observe_tensor_cycles(print):
    kept = []
    serve(kept.append, 30)
    row, = cumem.growth()
    text = cumem._core.text(cumem._core.document(), True, 0)
# On a machine that does other things too it may seem to slow down.
assert row["verdict"] in ("leak", "growing") and "kept" in row["advice"], row
assert "per second" in text and "iteration" not in text, text
assert row["bytes_per_iteration"] > (1 << 20) and len(row["series"]) > 10, row
""", cwd=tmp_path)


def test_slices_end_in_time_where_tensors_are_rare(tmp_path):
    """By tensors made time is noticed: not by each fourth of one in 45 ms."""
    run_ok(SERVING + """
gc.disable()
with cumem.observe_tensor_cycles(print):
    kept = []
    for _ in range(40):
        kept.append(torch.empty(1 << 18))
        time.sleep(0.045)
    (device,) = json.loads(cumem._core.document())["timeline"]["devices"]
live = [sum(point[2:]) >> 20 for point in device["points"]]
steps = sorted(after - before for before, after in zip(live, live[1:]))
assert len(steps) >= 10 and steps[len(steps) // 2] <= 3, live
""", cwd=tmp_path)


def test_slices_end_after_a_removal_while_one_waited_to(tmp_path):
    """By a thread, while the main one, which ends them, waits for it."""
    run_ok(SERVING + """
import threading
def removed():
    handle = cumem.observe_tensor_cycles(print)
    serve(id, 4)
    handle.remove()
thread = threading.Thread(target=removed)
thread.start(); thread.join()
with cumem.observe_tensor_cycles(print):
    serve(id, 8)
    assert timeline(), "no slice has ended"
""", cwd=tmp_path)


def test_slices_end_by_the_collections_of_a_thread(tmp_path):
    """The main thread, where a pending call would end them, waits for it."""
    run_ok(SERVING + """
import threading
def work():
    for _ in range(40):
        node = Node(torch.empty(1 << 18))
        node.link = node
        del node
        gc.collect()
        time.sleep(0.05)
with cumem.warn_tensor_cycles():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    cumem.flush(30)
    (device,) = json.loads(cumem._core.document())["timeline"]["devices"]
assert len(device["points"]) >= 8, device["points"]
""", cwd=tmp_path)


def test_setting_up_is_no_growth(tmp_path):
    done = run_ok(SERVING + """
kept = []
with cumem.warn_tensor_cycles():
    serve(kept.append, 25)
    assert timeline()[-1] > 10
    model = torch.nn.Linear(512, 512)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(60):
        model(torch.randn(256, 512)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 39:
            assert cumem.growth() == [], cumem.growth()
            assert timeline() == list(range(1, 41)), timeline()
        if step >= 40:
            kept.append(torch.zeros(1 << 18))
    row, = cumem.growth()
assert row["verdict"] == "leak" and row["since_iteration"] in range(39, 44), row
""", cwd=tmp_path)
    assert "since iteration" in done.err and "slice" not in done.err, done.err


def test_what_a_short_job_kept_is_known_at_its_end(tmp_path):
    """Nobody is told in the first minute; who held it is gone when the report is written."""
    done = run_ok(SERVING + """
def main():
    answers = {}
    serve(lambda tensor: answers.setdefault(len(answers), tensor), 30)
cumem.warn_tensor_cycles()
main()
""", cwd=tmp_path)
    assert "LEAK" in done.err and "`answers` (dict" in done.err, done.err
    assert "C extension" not in done.err


def test_who_holds_it_is_looked_at_again_before_anybody_is_told(tmp_path):
    """Seen when it held a few; at the end it is gone."""
    run_ok(SERVING + """
def main():
    answers = {}
    serve(lambda tensor: answers.setdefault(len(answers), tensor), 60)
cumem.warn_tensor_cycles()
main()
""", cwd=tmp_path)
    (path,) = tmp_path.glob("leak-*.json")
    report = json.loads(path.read_text())
    (row,) = report["growth"]
    assert row["holder_iteration"] >= report["iteration"] / 3, row


def test_what_has_come_to_an_end_is_in_no_report(tmp_path):
    """It was seen to grow before anybody could be told, and is full at the end."""
    done = run_ok(SERVING + """
class Cache:
    def __init__(self):
        self.used, self.answers, self.count = 0, {}, 0
    def put(self, tensor):
        self.count += 1
        self.answers[self.count] = tensor
        self.used += tensor.nbytes
        while self.used > (30 << 20):
            self.used -= self.evict()
    def evict(self):
        return self.answers.pop(next(iter(self.answers))).nbytes
def main():
    cache = Cache()
    serve(cache.put, 60)
cumem.warn_tensor_cycles()
main()
""", cwd=tmp_path)
    assert done.err == ""
    for path in tmp_path.glob("leak-*.json"):
        rows = json.loads(path.read_text())["growth"]
        assert not [row for row in rows if row["verdict"] == "leak"], rows


def test_what_was_given_back_is_not_said_to_be_held(tmp_path):
    done = run_ok(SERVING + """
def main():
    answers = {}
    serve(lambda tensor: answers.setdefault(len(answers), tensor), 30)
with cumem.observe_tensor_cycles(print):  # nobody looks before he is asked
    main()
    row, = cumem.growth()
    assert row["holder"] == [] and "given back" in row["advice"], row
""", cwd=tmp_path)
    assert done.err == ""


def test_a_look_within_a_call_is_not_taken_in_by_what_the_call_has(tmp_path):
    """Of the inputs that graphs keep one is a local variable as well."""
    run_ok(NODES + """
import time
class Server:
    def __init__(self):
        self.net, self.audit = torch.nn.Linear(512, 512), {}
    def handle(self, x):
        self.audit[f"request {len(self.audit)}"] = self.net(x)
        return cumem.growth() if len(self.audit) == 30 else None
def main():
    server = Server()
    for _ in range(30):
        rows = server.handle(torch.randn(256, 512))
        cumem.step()
    return rows
with cumem.observe_tensor_cycles(print):
    rows = main()
assert len(rows) >= 2, rows
for row in rows:
    names = [step["edge"] for step in row["holder"]]
    assert ".audit" in names and "local x" not in names, row
    assert "audit" in row["advice"], row
""", cwd=tmp_path)


def test_who_trains_and_then_serves_has_slices_again(tmp_path):
    """After a minute without a step; what training leaked stays in the report, and its chart."""
    run_ok(SERVING + """
gc.disable()
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
def step():
    losses.append(model(torch.ones(1 << 14, 64)))
    losses[-1].sum().backward()
    optimizer.step()
    optimizer.zero_grad()
def timeline():
    timeline = json.loads(cumem._core.document())["timeline"]
    return timeline, [point[0] for point in timeline["devices"][0]["points"]]
with cumem.observe_tensor_cycles(print):
    for _ in range(20):
        step()
    before, numbers = timeline()
    assert before["by"] == "optimizer" and "slices_since" not in before, before
    assert numbers == list(range(1, 21)), numbers
    leaks = {row["fingerprint"] for row in cumem.growth() if row["verdict"] == "leak"}
    assert leaks
    kept = []
    torch.zeros(1)
    time.sleep(60)
    serve(kept.append, 150)
    served, numbers = timeline()
    rows = {row["fingerprint"]: row for row in cumem.growth()}
    row, = (row for row in rows.values() if "kept" in (row["advice"] or ""))
    text = cumem._core.text(cumem._core.document(), True, 0)
    step()
    step()
    after, more = timeline()
assert served["by"] == "optimizer" and served["slices_since"] == 21, served
assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 40, numbers
assert row["verdict"] in ("leak", "growing") and row["since_iteration"] > 20, row
assert "per second" in text and f"since time slice {row['since_iteration']} (at 7" in text, text
assert leaks <= set(rows) and {rows[leak]["verdict"] for leak in leaks} == {"settled"}, rows
assert "slices_since" not in after and more == list(range(1, more[-1] + 1)), (after, more)
assert more[-1] >= numbers[-1] + 2, more
""", cwd=tmp_path)


def test_who_keeps_each_calls_graph_is_told_and_not_the_call_that_runs(tmp_path):
    """Within a call its many tensors have one graph: as many blocks as one of those that are kept."""
    run_ok(NODES + """
class Server:
    def __init__(self):
        self.net, self.scores = torch.nn.Linear(64, 64), []
    def ask(self, x):
        keys, h = [], x
        for _ in range(40):
            h = torch.tanh(self.net(h))
            keys.append(h)
        self.scores.append({"score": h.sum()})
        return cumem.growth() if len(self.scores) == 40 else None
def main():
    server = Server()
    for _ in range(40):
        rows = server.ask(torch.randn(64, 64))
        cumem.step()
    return rows
with cumem.observe_tensor_cycles(print):
    rows = main()
assert rows and rows[0]["count"] > 1000 and rows[0]["verdict"] == "leak", rows
for row in rows:
    assert ".scores" in [step["edge"] for step in row["holder"]], row
    assert row["advice"] == "keep `score.item()` in what is appended to scores", row
""", cwd=tmp_path)
