# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What code says of how much stays in a container: what measures, trims, asks and carries."""

import os

import pytest

from objects_zoo import *  # noqa: F403


def test_what_bounds_a_container(probe):
    source = """def f(self, rows, cap):
 if len(rows) < cap: rows.append(1)
 if len(self.rows) >= 64: self.rows.pop(0)
 if len(rows) > 0 and len(rows) == 1: print(sum(rows) / len(rows))
 del rows[:cap]
 del self.table[cap]
 rows[:] = rows[-4:]
 rows = rows[-cap:]
 self.rows = self.rows[-8:]
 queue = join(rows)[-8:]
 tail = rows[-8:]
 heapq.heappush(self.heap, rows)
 heapq.heappop(self.heap)
"""
    told = probe.code(function_of(source).__code__)
    lines = [(kind, name, owner, line, trimmed)
             for (kind, name, owner, line), (_, trimmed) in zip(told["stores"], told["values"])
             if owner != "heapq"]
    assert lines == [
        (STORE_MEASURE, "", "rows", 2, 0), (STORE_CALL, "append", "rows", 2, 0),
        (STORE_MEASURE, "", "rows", 3, 0), (STORE_CALL, "pop", "rows", 3, 0),
        (STORE_REMOVE, "", "rows", 5, 1), (STORE_REMOVE, "", "table", 6, 0),
        (STORE_REMOVE, "", "rows", 7, 1), (STORE_LOCAL, "rows", "", 8, 1),
        (STORE_ATTRIBUTE, "rows", "self", 9, 1), (STORE_LOCAL, "queue", "", 10, 1),
        (STORE_LOCAL, "tail", "", 11, 0), (STORE_CALL, "heappush", "heap", 12, 0),
        (STORE_CALL, "heappop", "heap", 13, 0)]


def test_functions_have_arguments_and_methods_none(probe):
    source = """import weakref
def f(model, trial, writer):
 weakref.finalize(model, print, trial)
 finalize(model, print, key=trial)
 writer.finalize()
 writer.finalize(trial)
"""
    namespace = {}
    exec(compile(source, "<source>", "exec"), namespace)
    told = probe.code(namespace["f"].__code__)
    assert [(line, owner, decides) for (_, name, owner, line), (_, decides, _)
            in zip(told["stores"], told["keys"]) if name == "finalize" and owner != "weakref"] == [
        (3, "model", 3), (4, "model", 3), (5, "writer", 0), (6, "writer", 0), (6, "trial", 1)]


@pytest.mark.parametrize("plain, keyed", [
    ("rows = nsmallest(9, rows)", "rows = nsmallest(9, rows, key=f)"),
    ("rows = self.best(nlargest(9, rows))", "rows = self.best(rows=nlargest(9, rows))"),
    ("self.rows = np.append(self.rows, x)", "self.rows = np.append(self.rows, x, axis=0)"),
    ("rows = x.narrow(rows, 4)", "rows = x.narrow(rows, length=4)"),
    ("self.rows = Node(rows)", "self.rows = Node(rows=rows)"),
])
def test_a_call_with_keywords_does_what_one_without_does(probe, plain, keyed):
    told = [probe.code(function_of(f"def f(self, rows, x):\n {line}\n").__code__) for line in (plain, keyed)]
    assert told[0]["stores"] == told[1]["stores"] != []
    assert told[0]["marks"] == told[1]["marks"]
    assert told[0]["values"] == told[1]["values"]


def test_what_numpy_makes_longer(probe):
    source = """import math as np
def f(self, rows, x):
 self.rows = np.append(self.rows, x)
 rows = numpy.append(rows, x)
 rows = np.append(rows[1:], x)
 self.rows.append(rows, x)
 x = np.stack(self.rows, rows)
"""
    told = probe.code(function_of(source).__code__)
    assert [(owner, line) for kind, name, owner, line in told["stores"]
            if (kind, name) == (STORE_CALL, "append") and owner not in ("np", "numpy", "")] == [
                ("rows", 3), ("rows", 4), ("rows", 6)]


def test_what_is_put_in_a_frame_of_pandas(probe):
    source = """def f(self, df, x, k):
 df.loc[len(df)] = x
 self.df.at[k, 'x'] = x
 loc[k] = x
 self.rows[k] = x
"""
    told = probe.code(function_of(source).__code__)
    assert [(owner, line) for kind, _, owner, line in told["stores"] if kind == STORE_ITEM] == [
        ("df", 2), ("df", 3), ("loc", 4), ("rows", 5)]


def test_what_an_object_without_a_name_is_made_by(probe):
    source = """def f(self, x):
 Epoch(x).run()
 models.Epoch(x, n=3).run(x)
 [Epoch(y).run() for y in x]
 self.epoch.run()
 (x or Epoch(3)).run()
"""
    told = probe.code(function_of(source).__code__)
    made = {line: key for (kind, name, _, line), (key, _, _) in zip(told["stores"], told["keys"])
            if (kind, name) == (STORE_CALL, "run")}
    assert made == {2: "Epoch", 3: "Epoch", 4: "Epoch", 5: "self", 6: ""}  # of self.epoch.run(): self


def test_a_part_of_it_in_what_is_set(probe):
    source = """def f(self, x, n):
 self.k = self.k[:, -n:]
 self.k = torch.cat([self.k[..., -n:], x], 1)
 self.k = self.k[-n:].clone()
 x = x[-n:] + [self.k]
 self.k = torch.cat([self.k, self.k[-n:]])
 self.k = self.k + x[-n:]
 self.k = torch.cat([f(self.k), g(self.k[-n:])])
 self.k = self.k[0]
 self.k = self.k[n]
 self.k = self.k[x > n]
 self.k = x[self.k]
"""
    told = probe.code(function_of(source).__code__)
    assert {line: trimmed for (kind, _, _, line), (_, trimmed) in zip(told["stores"], told["values"])
            if kind in (STORE_ATTRIBUTE, STORE_LOCAL)} == {2: 1, 3: 1, 4: 1, 5: 1, 6: 0, 7: 0, 8: 0, 9: 0,
                                                        10: 1, 11: 1, 12: 0}


def test_a_part_by_way_of_a_variable(probe):
    source = """def f(self, x, n):
 y = torch.cat([self.k, x])
 self.k = y[-n:]
 self.k = y[-n:] if len(y) > n else y
 self.k = y if len(y) < n else y[-n:]
 y = torch.cat([self.k, x])
 self.k = y
 if len(y) > n: y = y[-n:]
 self.k = y
 y = self.k[:n]
 self.k = torch.cat([x, y])
 self.k = torch.cat([self.k, y])
 self.k = x[-n:]
 self.k = x if n else y
 y = self.k
 self.k = torch.cat([x, y])
 y = torch.cat([x, x])
 self.k = self.k + y[-n:]
 self.k = y[-n:] if n else x
 self.k = torch.narrow(self.k, 0, 0, n)
 self.k = torch.narrow(x, 0, 0, n)
 y = self.k[:n]
 y = self.f(y)
 self.k = self.g(y)
 self.k = torch.cat([self.k, x])[-n:].clone()
 self.k = torch.cat([self.k, x])[-n:].to("cpu", dtype=x).contiguous()
 self.k = torch.cat([self.k, x])[-n:].repeat(2)
 y = torch.cat([self.k, x])
 if len(y) > n: y = y.narrow(0, 0, n)
 self.k = y
 self.k = self.y
"""
    told = probe.code(function_of(source).__code__)
    assert {line: trimmed for (kind, _, _, line), (_, trimmed) in zip(told["stores"], told["values"])
            if kind == STORE_ATTRIBUTE} == {3: 1, 4: 1, 5: 1, 7: 0, 9: 1, 11: 1, 12: 0, 13: 0, 14: 1,
                                            16: 0, 18: 0, 19: 0, 20: 1, 21: 0, 24: 0, 25: 1, 26: 1, 27: 0, 30: 1,
                                            31: 0}


def test_comprehensions_that_leave_items_out(probe):
    source = """def f(self, x, n):
 self.k = [y for y in self.k if y > n]
 self.k = {y: z for y, z in self.k.items() if z and n or y}
 self.k = deque(y for y in self.k if y in x)
 self.k = deque((y for y in self.k if not y), 9)
 self.k = list(filter(lambda y: y > n, self.k))
 self.k = heapq.nlargest(n, self.k)
 self.k = list(islice(self.k, n))
 x = [(y, [z for z in y]) for y in list(x) if y]
 n = {y: n for y in n if y}
 self.k = [y if y else n for y in self.k]
 self.k = [y for y in self.k]
 self.k = [y for y in x if y]
 self.k = [z for y in self.k for z in y]
 self.k = [y for y in self.k if y] + self.k
 self.k = deque(y for y in self.k)
 self.k = [[z for z in y if z] for y in self.k]
"""
    told = probe.code(function_of(source).__code__)
    assert {line: trimmed for (kind, name, _, line), (_, trimmed) in zip(told["stores"], told["values"])
            if kind == STORE_ATTRIBUTE or name in ("x", "n")} == {
                **dict.fromkeys(range(2, 11), 1), **dict.fromkeys(range(11, 18), 0)}


def test_the_attribute_that_an_operation_makes_another_of(probe):
    source = """def f(self, x, n):
 self.sum += x * n
 self.avg = self.sum / n
 self.mean = 0.9 * self.mean + 0.1 * x
 self.last = x
 self.ratio = (self.sum - x) / self.count
 self.text = f(self.sum)
 self.rows[0] += x
"""
    told = probe.code(function_of(source).__code__)
    assert {line: key for (kind, _, _, line), (key, _, _) in zip(told["stores"], told["keys"])
            if kind == STORE_ATTRIBUTE} == {2: "sum", 3: "sum", 4: "mean", 5: "", 6: "sum", 7: ""}


def test_containers_without_items(probe):
    source = """def f(self, x):
 self.a = list()
 self.b = defaultdict(list)
 self.c = collections.deque()
 kept, self.d = self.d, []
 self.e = list(x)
 self.f = x or []
 self.g = [] if x else x
 self.h = dict(a=x)
"""
    told = probe.code(function_of(source).__code__)
    empty = {name for (kind, name, _, _), (_, empty, _) in zip(told["stores"], told["marks"])
             if kind == STORE_ATTRIBUTE and empty}
    assert empty == {"a", "b", "c", "d"}


def test_what_is_deleted_or_follows_a_call(probe):
    source = """def f(self, x, epoch):
 rows = []
 print(rows)
 del rows
 del self.rows
 print(x); self.rows = []
 self.parts[epoch] = []
 self.parts[epoch] = x or []
 logs = {'a': [], 'b': []}
 self.rows = x or []
"""
    told = probe.code(function_of(source).__code__)
    lines = [(kind, name, line, constant, empty)
             for (kind, name, _, line), (constant, empty, _) in zip(told["stores"], told["marks"])
             if kind in (STORE_LOCAL, STORE_ATTRIBUTE, STORE_ITEM)]
    assert lines == [
        (STORE_LOCAL, "rows", 2, 0, 1), (STORE_LOCAL, "rows", 4, 1, 0),
        (STORE_ATTRIBUTE, "rows", 5, 1, 0), (STORE_ATTRIBUTE, "rows", 6, 0, 1),
        (STORE_ITEM, "", 7, 0, 1), (STORE_ITEM, "", 8, 0, 0),
        (STORE_LOCAL, "logs", 9, 0, 1), (STORE_ATTRIBUTE, "rows", 10, 0, 0)]


def test_a_loop_with_handlers_in_it(probe):
    source = """def f(self, x):
 a = x
 for y in x:
  b = y
  with self.lock:
   c = y
  try:
   d = y
  except ValueError as e:
   print(e)
  g = y
 h = x
"""
    told = probe.code(function_of(source).__code__)
    repeated = {name for (kind, name, _, _), (_, _, again) in zip(told["stores"], told["marks"])
                if kind == STORE_LOCAL and again}
    assert repeated - {"e"} == {"y", "b", "c", "d", "g"}


def test_keys_that_are_taken_again_or_old(probe):
    source = """def f(self, step, n, y):
 self.a[step % n] = y
 slot = step % n
 self.b[slot] = y
 slot = step
 self.c[slot] = y
 del self.d[step - n]
 self.e.pop(step - n, None)
 old = step - n
 del self.f[old]
 del self.g[step]
 del self.h[n - 1]
 self.i.pop(step)
 self.j.pop(len(self.j) - n)
 if len(self.k) - n > 0: self.k.pop()
 del self.m[f"epoch {step - n}"]
 self.o.pop(f"{n}: {step - n:04d}", None)
 old = str(step - n)
 del self.p["x", old]
 del self.q[f"epoch {step}"]
 self.r.pop("e%d" % (step - n), None)
 self.s.pop("e%d of %d" % (step - n, n), None)
 self.t.pop("e{}".format(step - n), None)
"""
    told = probe.code(function_of(source).__code__)
    bound = {owner for (kind, _, owner, _), (_, trimmed) in zip(told["stores"], told["values"])
             if kind in (STORE_ITEM, STORE_REMOVE) and trimmed}
    assert bound == {"a", "b", "d", "e", "f", "m", "o", "p", "r", "s", "t"}
    assert {owner for kind, _, owner, _ in told["stores"] if kind == STORE_MEASURE} == {"k"}


def test_what_numbers_decide_on(probe):
    source = """def f(self, x, n):
 if self.count < self.size:
  self.count += 1
  self.rows.append(x)
 if n < 4: self.rows.append(x)
"""
    told = probe.code(function_of(source).__code__)
    assert [store for store in told["own"] if store[0] == STORE_COMPARE] == [
        (STORE_COMPARE, "count", "size", "", 3, 0)]


def test_which_of_two_numbers_is_less(probe):
    source = """def f(self, x, n):
 if self.count < self.size: self.rows.append(x)
 if self.count <= n: self.rows.append(x)
 if self.count > self.size: self.rows.append(x)
 if self.count >= n: self.rows.append(x)
 if self.count == n: self.rows.append(x)
 if self.count != n: self.rows.append(x)
"""
    assert probe.code(function_of(source).__code__)["less"] == [(2, 1), (3, 1), (4, 0), (5, 0), (6, 0), (7, 0)]


def test_what_a_with_makes(probe):
    source = """def f(self, x, path):
 with Meter(x) as meter: pass
 with x as same: pass
 with self.lock: pass
 with Meter(x) as self.meter, open(path) as file: pass
"""
    told = probe.code(function_of(source).__code__)
    made = {name: made for (kind, name, _, _), (made, _) in zip(told["stores"], told["values"])
            if kind in (STORE_LOCAL, STORE_ATTRIBUTE)}
    assert made["meter"] == made["file"] == 1
    assert made["same"] == 0


def test_what_a_length_decides_on(probe):
    source = """def f(self, rows, cap):
 if len(rows) > cap:
  rows.pop()
 for row in rows:
  if len(self.rows) == cap:
   continue
  if len(rows) < cap and self.has(row):
   rows.append(self.make(row))
   self.note(row)
  self.note(rows)
 if len(self.rows) >= cap:
  return None
 self.rows.append(rows)
"""
    told = probe.code(function_of(source).__code__)
    decides = {line: decides for (kind, _, _, line), (_, decides, _)
               in zip(told["stores"], told["keys"]) if kind == STORE_MEASURE}
    assert decides == {2: 1, 5: 2**32 - 1, 7: 7, 11: 2**32 - 1}


def test_a_length_that_has_a_name(probe):
    source = """def f(rows, cap):
 count = len(rows)
 if count > cap: rows.pop()
 count, other = len(rows), count
 while count < 9: rows.append(1)
 count = cap
 if count > 9: rows.pop()
 if (size := len(rows)) > cap: rows.pop()
"""
    told = probe.code(function_of(source).__code__)
    assert {(owner, line) for kind, _, owner, line in told["stores"] if kind == STORE_MEASURE} == {
        ("rows", 3), ("rows", 5), ("rows", 8)}


def test_what_goes_by_another_name(probe):
    source = """def f(self, rows, *rest, last=None):
 items = self.rows
 trim(rows, 9, self.queue['a'])
 self.keep(items, most=last)
 print(len(rows))
 tools.cut(rows)
 self.x = rows
 self.last, self.rows = self.rows, {}
 self.y = self.table['rows']
 row = self.table.setdefault(rows, [])
 first = self.table.setdefault('a', [])
 return rows[-9:]
"""
    told = probe.code(function_of(source).__code__)
    assert [store for store in told["own"] if store[1] != "print"] == [
        (STORE_PARAMETER, "self", "", "", 0, 0), (STORE_PARAMETER, "rows", "", "", 1, 0),
        (STORE_ALIAS, "items", "rows", "", 0, 0),
        (STORE_HAND, "trim", "rows", "", 0, 0), (STORE_HAND, "trim", "a", "queue", 2, 0),
        (STORE_HAND, "keep", "items", "", 0, 1), (STORE_HAND, "keep", "last", "", 1, 1),
        (STORE_HAND, "cut", "rows", "", 0, 1),
        (STORE_ALIAS, "x", "rows", "", 0, 0), (STORE_ALIAS, "last", "rows", "", 0, 0),
        (STORE_HAND, "setdefault", "rows", "", 0, 1), (STORE_ALIAS, "row", "", "table", 0, 0),
        (STORE_ALIAS, "first", "a", "table", 0, 0),
        (STORE_RETURN, "", "rows", "", 0, 0)]


def test_a_text_that_is_formatted_is_no_remainder(probe):
    source = """def f(self, x, step, n):
 self.rows["step-%d" % step] = x
 self.rows["step-%d of %d" % (step, n)] = x
 self.rows[step % n] = x
"""
    told = probe.code(function_of(source).__code__)
    assert [(line, trimmed) for (kind, _, _, line), (_, trimmed) in zip(told["stores"], told["values"])
            if kind == STORE_ITEM] == [(2, 0), (3, 0), (4, 1)]


def test_what_a_text_is_made_of(probe):
    source = """def f(self, i, j):
 key = f'row {i:03d}'
 other = f'{i}/{j}'
 self.get(f'{key}!', str(j), (i, 4), f'{self.x}{i}')
 self.memo[f'x{i}'] = other
"""
    told = probe.code(function_of(source).__code__)
    assert [store for store in told["own"] if store[0] != STORE_PARAMETER] == [
        (STORE_ALIAS, "key", "i", "", 0, 0),
        (STORE_HAND, "str", "j", "", 0, 0), (STORE_HAND, "get", "key", "", 0, 1), (STORE_HAND, "get", "j", "", 1, 1),
        (STORE_HAND, "get", "i", "", 2, 1)]
    assert [key for (kind, _, _, _), (key, _, _) in zip(told["stores"], told["keys"])
            if kind == STORE_ITEM] == ["i"]


def test_what_a_loop_within_a_loop_goes_over(probe):
    source = """def f(rows, loader):
 for epoch in rows:
  step = epoch
  for i, (x, y) in enumerate(loader):
   if x: continue
   step += 1
 for last in rows: pass
 while rows:
  for first in rows: pass
"""
    told = probe.code(function_of(source).__code__)
    assert {name: turn for (kind, name, _, _), turn in zip(told["stores"], told["turns"]) if kind == STORE_LOCAL} == {
        "epoch": (1, 0, 0), "step": (0, 0, 0), "i": (1, 1, 0), "x": (1, 1, 0), "y": (1, 1, 0), "last": (1, 0, 0),
        "first": (1, 1, 0)}
    assert all(owner == "" for kind, _, owner, _ in told["stores"] if kind == STORE_LOCAL)


@pytest.mark.parametrize("line, scaled", [
    ("x = 0.9 * x + 0.1 * y", 1), ("x = y * 0.1 + x * 0.9", 1), ("x = x * self.decay + (1 - self.decay) * y", 1),
    ("self.x = self.decay * self.x + (1 - self.decay) * y", 1), ("self.x = self.x * 0.9 - y", 1), ("x *= 0.9", 1),
    ("x += 0.1 * y", 0), ("x = x + 0.1 * y", 0), ("x = 0.9 * y + z", 0), ("x = f(0.9 * x) + y", 0),
    ("x = (x * y + z) / (y + 1)", 1), ("x = x / 2 + y", 1), ("x = y / x", 0), ("x = x + 0.1 * y.x", 0),
    ("self.x += 0.1 * x", 0), ("self.x += self.w * x", 0), ("self.x = 0.9 * x", 0), ("x = 0.5 * self.x", 0),
    ("x = (0.9 * x) % y", 0), ("x = [0.9 * x]", 0), ("self.x = self.x + 0.1 * y", 0), ("self.x += y * z", 0),
])  # fmt: skip
def test_what_multiplies_what_it_had(probe, line, scaled):
    """A moving average, which a `+=` would not be; of an attribute it is known what it is made of."""
    told = probe.code(in_its_file(f"def f(self, x, y, z):\n {line}\n")["f"].__code__)
    stored = [(turn[2], key) for (kind, name, _, _), turn, (key, _, _) in zip(told["stores"], told["turns"], told["keys"])
              if kind in (STORE_LOCAL, STORE_ATTRIBUTE) and name == "x"]
    own = {"self.x += self.w * x": "x", "self.x = 0.9 * x": ""}.get(line, "x" if line.startswith("self.x") else "")
    assert stored == [(scaled, own)]


def test_what_a_line_adds(probe):
    source = """def f(self, total, loss, sums):
 total += loss
 total = loss + total
 total = total + loss + self
 total += loss * 2
 total += self.loss
 total += f(loss)
 self.total += loss
 self.total = self.total + loss
 sums["kl"] += loss
 total = loss + sums
 total -= loss
 total = f(total + loss)
 total += 1
"""
    record = probe.code(function_of(source).__code__)
    assert record["marked"]["added"] == {2: "loss", 3: "loss", 4: "(...)", 5: "(...)", 6: "(...)", 7: "(...)",
                                        8: "loss", 9: "loss", 10: "loss", 14: "(...)"}


def test_what_a_loop_takes_out_until_it_finds_one(probe):
    source = """def f(heap, rows):
 while heap:
  task = heappop(heap)
  if task.good:
   return task
 while heap:
  heappop(heap)
 while rows:
  if rows[0] is None: return
  if rows[0]: return rows
  rows.pop()
  if rows: return None
 while rows:
  while heap:
   heappop(heap)
  rows.pop()
  if rows:
   raise ValueError(rows)
 return heap
"""
    assert set(probe.code(function_of(source).__code__)["found"]) == {3}


def test_what_a_loop_finds_after_it_has_gone_on(probe):
    source = """def f(heap, rows):
 for _ in range(9):
  task = heappop(heap)
  if task.late: continue
  if task.good: return task
  heap.pop()
 while heap:
  heappop(heap)
  for row in rows:
   if rows.pop(): break
  else: rows.pop()
  if heap.pop(): return row
 while rows:
  heappop(heap)
  while heap:
   if heap.pop(): return heap
 return rows.pop()
"""
    assert set(probe.code(function_of(source).__code__)["found"]) == {2, 3, 8, 11, 12, 14, 16}


def test_how_many_loops_are_around_it(probe):
    source = """def f(rows, steps):
 rows.append(0)
 for step in steps:
  rows.append(step)
  for row in list(rows):
   if row < step - 9: rows.remove(row)
   while row:
    rows.pop()
  rows.append(step)
  with step:
   rows.append(step)
 while rows: rows.pop()
 for row in rows:
  rows.append(row)
"""
    deep, deeper = probe.code(function_of(source).__code__)["deep"]
    assert set(deep) == {5, 6, 8} and set(deeper) == {8}


def test_a_library_tells_no_second_names(probe):
    source = "def f(rows):\n items = rows\n trim(items)\n return items[1:]\n"
    namespace = {}
    exec(compile(source, os.__file__, "exec"), namespace)
    assert probe.code(namespace["f"].__code__)["own"] == []


def test_what_a_loop_carries(probe):
    source = """def f(rows, past, net):
 total, seen = 0, None
 for x in rows:
  y = net(x)
  longer = cat(past, x)
  past = longer
  y = net(y)
  for part in y:
   z = net(part)
   total += z
   if seen is None: print(z)
   seen = z
  while y: y = net(y)
  once = 1
  print(once)
 first = net(past)
 print(first)
"""
    told = probe.code(function_of(source).__code__)
    carried = {name for (kind, name, _, _), (_, _, carried) in zip(told["stores"], told["keys"]) if carried}
    assert carried == {"past", "total", "seen", "y"}
    assert all(key == "" and decides == 0 for (kind, _, _, _), (key, decides, _)
               in zip(told["stores"], told["keys"]) if kind == STORE_LOCAL)


def test_what_asks_for_a_key(probe):
    source = """def f(self, key, rows):
 if key not in self.memo: self.memo[key] = rows[key]
 if 'k' in rows or rows['k'] or rows[self.key]: rows['k'] = key
 return self.memo[key]
"""
    told = probe.code(function_of(source).__code__)
    assert [(kind, name, owner, line, key)
            for (kind, name, owner, line), (key, _, _) in zip(told["stores"], told["keys"])] == [
        (STORE_ASK, "", "memo", 2, "key"), (STORE_READ, "", "rows", 2, "key"),
        (STORE_ITEM, "", "memo", 2, "key"), (STORE_ASK, "", "rows", 3, ""),
        (STORE_ITEM, "k", "rows", 3, ""), (STORE_READ, "", "memo", 4, "key")]
