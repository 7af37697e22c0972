# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Memos and caches under keys: no leak at once where these are sizes of data, or a data set's items."""

import pytest
from process import NODES, run_ok

PROGRAM = NODES + """
import functools

def made():
    return torch.ones(64, 256).tanh()

class Memo:
    def __init__(self, paths=()):
        self.memo, self.past, self.step = {}, [], 0
        self.paths = paths

class Masks(Memo):
    def mask(self, size):
        if size not in self.memo:
            self.memo[size] = made()
        return self.memo[size]
    def of(self, x):
        x = x.to("cpu")
        rows, columns = x.shape
        return self.mask(columns)
    def fit(self, data):
        for x in data:
            self.of(x)
            yield

class Lengths(Memo):
    def fit(self, data):
        for i, x in enumerate(data):
            if x.size(1) not in self.memo:
                self.memo[x.size(1)] = made()
            yield

class Past(Memo):
    def mask(self, past):
        size = len(past)
        if size not in self.memo:
            self.memo[size] = made()
    def fit(self, data):
        for x in data:
            self.past.append(x)
            self.mask(self.past)
            yield

class Steps(Masks):
    def fit(self, data):
        for x in data:
            self.step += 1
            if self.step < 9:
                self.mask(x.shape[1])
            else:
                self.mask(self.step + 1)
            yield

class Longer(Masks):
    def fit(self, data):
        for x in data:
            rest = x if self.step == 0 else torch.cat([rest, x[:, :1]], 1)
            self.step += 1
            self.mask(rest.shape[1])
            yield

class Beams(Masks):
    def fit(self, data):
        beams = [torch.ones(1, 1)]
        for x in data:
            beams = [torch.cat([beam, beam[:, :1]], 1) for beam in beams]
            for beam in beams:
                self.mask(beam.shape[1])
            yield

class Items(Memo):
    def load(self, key):
        if key not in self.memo:
            self.memo[key] = made()
        return self.memo[key]
    def __getitem__(self, index):
        path = self.paths[index]
        return self.load(path)

class Numbered(Items):
    def __getitem__(self, index):
        self.step += 1
        path = f"{self.paths[0]} {self.step:03d}"
        return self.load(path)

class Through(Memo):
    # By what nobody can read: a library hands it on.
    def fit(self, sizes):
        through = torch.nn.Sequential(torch.nn.Identity())
        for size in sizes:
            self.of(through(torch.ones(2, size)))
            self.step += 1
            yield

class Ropes(Through):
    def of(self, x):
        key = (x.size(1), x.device, x.dtype)
        if key not in self.memo:
            self.memo[key] = made()

class Shapes(Through):
    def of(self, x):
        if x.shape not in self.memo:
            self.memo[x.shape] = made()

class Stepped(Through):
    def of(self, x):
        key = (self.step, x.device)
        if key not in self.memo:
            self.memo[key] = made()

class Lengthwise(Through):
    def of(self, x):
        key = (x.shape, self.step)
        if key not in self.memo:
            self.memo[key] = made()

class Objects(Through):
    def of(self, x):
        key = (x.size(1), object())
        if key not in self.memo:
            self.memo[key] = made()

class Tables(Through):
    def of(self, x):
        size = x.shape[1]
        if size not in self.memo:
            self.memo[size] = (torch.ones(size, 512), torch.ones(4))

class Others(Through):
    def of(self, x):
        size = x.shape[1]
        if size not in self.memo:
            self.memo[size] = (made(), torch.ones(4))

drawn = [7 * i % 41 + 4 for i in range(40)]
uneven = [32 + 4 * i + i % 3 for i in range(40)]
even = [32 + 4 * i for i in range(40)]

@functools.cache
def image(path):
    return made()

class Bank(Memo):
    # what each sample of a shuffled data set was last time: nobody asks whether it is there
    def fit(self, ids):
        for i in ids:
            self.memo[i] = made()
            yield

class Reserved:
    def __init__(self):
        self.memo = {i: None for i in range(200)}
    def fit(self, ids):
        for i in ids:
            x = made()
            self.memo[i] = x.clone()
            yield

class Wanted(Memo):
    # the look-alike: most turns have nothing to keep
    def fit(self, ids):
        for step in range(10 * len(ids)):
            self.memo[step] = None if step % 10 else made().clone()
            if step % 10 == 9:
                yield

@functools.cache
def triangle(size):
    return made()

@functools.cache
def at(path, step):
    return made()

shuffled = [61 * i % 199 for i in range(40)]
arriving = [i ^ 3 for i in range(40)]  # ids of requests, four of which change places
paths = [f"image {i:03d}" for i in range(40)]
data = [torch.ones(2, i) for i in range(1, 41)]

def items(of):
    for i in range(40):
        of[i]
        yield

def epochs():
    for epoch in range(1):
        for path in paths:
            image(path)
            yield

def sizes():
    for x in data:
        triangle(x.shape[1])
        yield

def steps():
    step = 0
    for epoch in range(1):
        for path in paths:
            step += 1
            at(path, step)
            yield

model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def run(name, turns):
    with cumem.observe_tensor_cycles(lambda page: None):
        for turn, _ in enumerate(turns):
            model(torch.ones(4, 16)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if turn == 35:
                print(name, *{row["verdict"] for row in cumem.growth() if row["verdict"] in ("growing", "leak")} or "-")
"""

# fmt: off
ROWS = [
    ("Masks().fit(data)", "growing"), ("Lengths().fit(data)", "growing"), ("Past().fit(data)", "leak"),
    ("Steps().fit(data)", "leak"), ("Longer().fit(data)", "leak"), ("Beams().fit(data)", "leak"),
    ("items(Items(paths))", "growing"), ("items(Numbered(paths))", "leak"),
    ("Ropes().fit(drawn)", "growing"), ("Shapes().fit(drawn)", "growing"),
    ("Stepped().fit(drawn)", "leak"), ("Objects().fit(drawn)", "leak"),
    ("Lengthwise().fit(drawn)", "leak"),
    ("Tables().fit(uneven)", "growing"), ("Tables().fit(uneven[::-1])", "growing"), ("Tables().fit(even)", "leak"),
    ("Others().fit(uneven)", "leak"),
    ("Bank().fit(shuffled)", "growing"), ("Bank().fit(arriving)", "leak"), ("Reserved().fit(shuffled)", "growing"),
    ("Wanted().fit(shuffled)", "leak"),
    ("epochs()", "growing"), ("sizes()", "growing"), ("steps()", "leak"),
]
# fmt: on


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    runs = "".join(f"run({call!r}, {call})\n" for call, _ in ROWS)
    out = run_ok(PROGRAM + runs, cwd=tmp_path_factory.mktemp("keys")).out
    return dict(line.rsplit(" ", 1) for line in out.splitlines())


@pytest.mark.parametrize("call, verdict", ROWS)
def test_keys_in_order(told, call, verdict):
    assert told[call] == verdict
