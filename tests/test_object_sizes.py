# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What code says of sizes, and of what keys and loops take."""

from objects_zoo import *  # noqa: F403


def test_what_is_a_size_of_what(probe):
    source = """def f(self, x, rows, d):
 n = len(x)
 b, c = x.shape
 e = x.shape[-1] - 1
 g, h = x.size()
 self.mask(len(x), x.size(1))
 mask(x.size(dim=1) + 1)
 self.memo[x.shape[1]] = self.memo[len(x)] = d
 if len(x) in self.memo: pass
 i = len(self.rows)
 j = self.x.shape[1]
 k = x.sum(1)
 l = len(x) * 2
 m = len(x[1:])
 self.mask(len(self.rows), self.x.size(1), n)
 self.memo[len(self.rows)] = d
 o = x.shape
 p = x.shape[1:]
"""
    sized = [("n", "x"), ("b", "x"), ("c", "x"), ("e", "x"), ("g", "x"), ("h", "x")]
    assert probe.code(function_of(source).__code__)["taken"] == [
        *((STORE_ALIAS, name, of, 1) for name, of in sized),
        (STORE_HAND, "mask", "x", 1), (STORE_HAND, "mask", "x", 1), (STORE_HAND, "mask", "x", 1),
        (STORE_ITEM, "", "x", 1), (STORE_ITEM, "", "x", 1), (STORE_ASK, "", "x", 1)]


def test_what_loops_go_over(probe):
    source = """def f(self, rows):
 for a in rows: pass
 for i, (b, c) in enumerate(self.rows): pass
 for d in made(): pass
 for e in range(4): pass
 while rows:
  for h in rows: pass
"""
    told = {name: of for _, name, of, _ in probe.code(function_of(source).__code__)["taken"]}
    assert not {"rows", "self"} & {told.pop("d"), told.pop("e")}
    assert told == {"a": "rows", "i": "rows", "b": "rows", "c": "rows", "h": "rows"}


def test_what_is_taken_by_a_variable(probe):
    source = """def f(self, i):
 path = self.paths[i]
 image, label = self.samples[i]
 self.load(self.paths[i], path)
 last = self.paths[-1]
 key = self.paths[self.i]
 name = self.names[path].lower()
"""
    assert probe.code(function_of(source).__code__)["taken"] == [
        (STORE_ALIAS, "path", "i", 0), (STORE_ALIAS, "image", "i", 0), (STORE_ALIAS, "label", "i", 0),
        (STORE_HAND, "load", "i", 0)]


def test_what_is_as_large_as_it_was(probe):
    source = """def f(self, x, y):
 x = x.to(self.device)
 y = self.y.to(self.device)
 x, y = x.cuda(), y.mean()
 z = x.get(y)
"""
    told = probe.code(function_of(source).__code__)
    assert [store for store in told["own"] if store[0] == STORE_ALIAS] == [
        (STORE_ALIAS, "x", "x", "", 0, 0), (STORE_ALIAS, "x", "x", "", 0, 0)]
