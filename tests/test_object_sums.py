# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""What code says of a sum that a loop makes: whether a backward() behind the loop takes it, here or at the caller."""

import os

import pytest

from objects_zoo import *  # noqa: F403


def code_of(probe, body):
    source = "def f(net, rows, n):\n" + "".join(f" {line}\n" for line in body.splitlines())
    return probe.code(in_its_file(source)["f"].__code__)


def lines_in_function(probe, body, mark):
    return sorted({line - 1 for line in code_of(probe, body)["marked"][mark]})


def taken_calls(probe, body):
    return code_of(probe, body)["marked"]["taken"]


def settled_lines(probe, body, function=True):
    """Of a program whose first line is 1, in a function or in a module: lines of variables."""
    if function:
        return lines_in_function(probe, body, "settled")
    return probe.code(compile_in_its_file(body))["marked"]["settled"]


SUM = """for task in rows:
 total = 0
 for x in task:
  loss = net(x)
  loss.backward()
  {}
 {}
"""


@pytest.mark.parametrize("function", [True, False])
@pytest.mark.parametrize("add", ["total = total + net(x)", "total += net(x)", "total += net(n) if n else 0",
                                 "total, n = total + net(x), n + 1"])
@pytest.mark.parametrize("end", [
    "total.backward()", "(total / n).backward()", "total /= n; total.backward()",
    "loss = total / n; loss.backward()", "mean = net(n + total); loss = mean + n; net(n).backward(loss)",
    "net.scale(total).backward()", "net.backward(total)", "grads = torch.autograd.grad(total / n, rows)",
    "net.train(); print(total); n += 1; torch.autograd.backward([n, total])",
    "if n > 3: total.backward()", "for p in net: p.grad = None\n total.backward()", "with net: total.backward()",
])
def test_a_sum_that_is_taken_behind_its_loop(probe, function, add, end):
    assert settled_lines(probe, SUM.format(add, end), function) == [6]


@pytest.mark.parametrize("function", [True, False])
@pytest.mark.parametrize("add, end", [
    ("total += net(x)", "print(total)"),
    ("total += net(x)", "loss.backward()"),
    ("total += net(x)", "print(total.item()); loss.backward()"),
    ("total += net(x)", "if total > 3: loss.backward()"),
    ("total += net(x)", "total = 0; total.backward()"),
    ("total += net(x)", "del total; total.backward()"),
    ("total += net(x)", "mean = total / n; mean = 0; mean.backward()"),
    ("total += net(x)", "print(total, loss.grad)"),
    ("total += net(x)", "print(total); loss = net(n); loss.backward()"),
    ("total += net(x)", "n.append(total.backward)"),
    ("total += net(x)", "mean = total.item() / n; loss = mean * net(x); loss.backward()"),
    ("total += net(x)", "loss = float(total / n) * net(x); loss.backward()"),
    ("total += net(x)", "(total.detach() * net(x)).backward()"),
    ("total += net(x)", "total.backward"),
    ("total += net(x)", "n = 0\nn.backward()"),
    ("total += net(x); total.backward(retain_graph=True)", "print(total)"),
    ("total += net(x); total.backward(retain_graph=True)", "total.backward()"),
    ("total += net(x); mean = total / n; mean.backward(retain_graph=True)", "mean.backward()"),
    ("total = net(x)", "total.backward()"),
    ("total += net(x)", "total.backward(retain_graph=n)"),
    ("total += net(x)", "total.backward()\n net(n).backward(retain_graph=True)"),
    # What is added has been taken: it is summed up to be shown.
    ("total += loss", "total.backward()"),
    ("total = total + net(loss)", "loss = net(total); loss.backward()"),
    ("n += 1; total += 2 * loss", "total.backward()"),
    ("total += net(x)", "rows[n:n + 1] = [total]\n net(n).backward()"),
    ("total += net(x)", "del rows[total]\n net(n).backward()"),
    ("total += net(x)", "loss = int(total) * net(x); loss.backward()"),
])
def test_a_sum_that_is_not(probe, function, add, end):
    assert settled_lines(probe, SUM.format(add, end), function) == []


def test_a_sum_of_all_loops_is_taken_in_one(probe):
    source = """total = 0
for task in rows:
 for x in task:
  total = total + net(x)
 total.backward(retain_graph=True)
"""
    plain = source.replace("retain_graph=True", "")
    for sums in (source, source + "total.backward()", plain):
        assert settled_lines(probe, sums) == settled_lines(probe, sums, False) == []
    assert settled_lines(probe, plain.replace(" total.b", "total.b")) == [4]
    assert settled_lines(probe, source.replace(" total.b", "total.b")) == []


@pytest.mark.parametrize("function", [True, False])
def test_a_variable_that_is_called_data(probe, function):
    source = """for task in rows:
 total = 0
 for data in task:
  total = total + net(data)
 loss = net(data) + total
 loss.backward()
"""
    assert settled_lines(probe, source, function) == [4]
    inside = source.replace("  total =", "  n = net(data) + total; n.backward()\n  total =")
    assert settled_lines(probe, inside, function) == []


def test_sums_of_one_name_are_asked_all(probe):
    source = """for task in rows:
 total = 0
 for x in task:
  for y in x: total += net(y)
 while n:
  total = total + n
 total.backward()
 {}
 for x in task:
  total += x
 print(total)
"""
    assert settled_lines(probe, source.format("n = 0")) == []
    source = source.replace(" print(total)\n", " total.backward()\n")
    assert settled_lines(probe, source.format("total = 0")) == [4, 6, 10]


def test_handlers_and_other_loops_beside_it(probe):
    source = """for task in rows:
 with net as context:
  total, n = 0, 1
  try:
   while n:
    with net:
     loss = context(task)
    try:
     total = total + loss
    except ValueError:
     continue
    if n == 9: break
   for p in net: p.grad = None
  finally:
   net.zero_grad()
  if total: total.backward()
"""
    assert settled_lines(probe, source) == settled_lines(probe, source, False) == [9]
    assert settled_lines(probe, source.replace("if total: ", "total = loss; ")) == []


def test_a_sum_that_a_function_within_has_too(probe):
    source = """def f(rows, net):
 total = 0
 for x in rows:
  total += net(x)
 total.backward()
 return lambda: total
"""
    assert probe.code(in_its_file(source)["f"].__code__)["marked"]["settled"] == [4]


def test_code_that_is_too_long_to_be_asked_about(probe):
    many = "".join(f" n{i} = 0\n" for i in range(40)) + SUM.format("total += net(x)", "total.backward()")
    counters = SUM.format("total += net(x); " + "; ".join(f"n{i} += 1" for i in range(40)), "total.backward()")
    assert settled_lines(probe, many.replace(" n", "n")) == [46]
    assert settled_lines(probe, counters) == []


def test_where_a_library_calls_backward(probe):
    source = "def f(rows):\n total = 0\n for x in rows:\n  total += x\n total.backward()\n"
    namespace = {}
    exec(compile(source, os.__file__, "exec"), namespace)
    assert probe.code(namespace["f"].__code__)["marked"]["settled"] == []
    assert probe.code(in_its_file(source)["f"].__code__)["marked"]["settled"] == [4]


GIVEN = """total = 0
for x in rows:
 loss = net(x)
 total = total + net(x)
{}
"""


@pytest.mark.parametrize("end", [
    "return total", "return total / n", "mean = total / n; print(mean.item()); return mean", "return total, n",
    "if n == 0: return None\nreturn total", "return net.scale(total)", "total /= n; return total",
    "return total / n if n else total",
])
def test_a_sum_that_is_returned(probe, end):
    assert lines_in_function(probe, GIVEN.format(end), "given")[0] == 4
    assert settled_lines(probe, GIVEN.format(end)) == []


@pytest.mark.parametrize("end", [
    "return n", "return total.item()", "return total.detach()", "return float(total) / n", "total = 0; return total",
    "rows.append(total); return n", "print(total)", "return net, n", "return lambda: total",
    "net(n).backward(retain_graph=True); return total",
])
def test_a_sum_that_is_not_returned(probe, end):
    assert 4 not in lines_in_function(probe, GIVEN.format(end), "given")


def test_a_sum_that_is_returned_for_show(probe):
    assert 4 in lines_in_function(probe, GIVEN.format("return total"), "given")
    shown = GIVEN.replace(" + net(x)", " + loss").replace("loss = net(x)", "loss = net(x); loss.backward()")
    assert 4 not in lines_in_function(probe, shown.format("return total"), "given")
    taken = GIVEN.replace(" total = total + net(x)", " total = total + net(x); total.backward()")
    assert 4 not in lines_in_function(probe, taken.format("return total"), "given")


def test_a_sum_of_more_than_this_function(probe):
    source = """def f(rows, net):
 global total
 for x in rows:
  total = total + net(x)
 return total
"""
    assert probe.code(in_its_file(source)["f"].__code__)["marked"]["given"] == []


@pytest.mark.parametrize("call", ["f(rows, n)", "f(n)", "f()", "f(rows=n)", "net.f(rows)", "net.f()",
                                  "net.f(len(rows))", "(f(n) / 3)", "net.scale(f(n))", "net.loss.f(rows[0])"])
@pytest.mark.parametrize("use", [
    "{}.backward()", "loss = {}; loss.backward()", "loss = {} / n; print(loss.item()); loss.backward()",
    "loss, n = {}; net.zero_grad(); loss.backward()", "loss = {}; net.manual_backward(loss)",
    "loss = {}\n if n: loss.backward()",
])
def test_a_call_that_returns_what_is_taken(probe, call, use):
    assert "f" in taken_calls(probe, "for x in rows:\n " + use.format(call))
    assert "f" in taken_calls(probe, use.format(call).replace("\n ", "\n"))


@pytest.mark.parametrize("call", ["f(rows, n)", "f()", "net.f(rows)", "net.f()", "net.f(len(rows))"])
@pytest.mark.parametrize("use", [
    "{}", "print({})", "loss = {}; print(loss)", "rows.append({}); n.backward()", "loss = {}; n.backward()",
    "loss = {}; loss = 0; loss.backward()", "loss = {}.item(); (loss * n).backward()",
    "loss = float({}); loss.backward()", "n = {}\nn.backward()", "loss = {}; loss.detach().backward()",
    "loss = {}; loss.backward(retain_graph=True)", "loss.backward(); loss = {}", "loss = {}; loss.backward",
])
def test_a_call_that_returns_what_is_not(probe, call, use):
    assert "f" not in taken_calls(probe, "for x in rows:\n " + use.format(call))
