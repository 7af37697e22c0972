# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""Heaps of a given number of objects that Python's collector tracks."""

import random


class Instance:
    def __init__(self, other):
        self.other = other
        self.number = 7


def lists(count):
    return [[] for _ in range(count)]


def random_graph(count):
    """Each refers to two others, anywhere: what is worst for a cache."""
    nodes = [[] for _ in range(count)]
    dice = random.Random(0)
    for node in nodes:
        node += (nodes[int(dice.random() * count)], nodes[int(dice.random() * count)])
    return nodes


def instances(count):
    nodes, previous = [], None
    for _ in range(count):
        previous = Instance(None if len(nodes) % 100 == 0 else previous)
        nodes.append(previous)
    return nodes


def closures(count):
    """A function, its closure tuple and a cell: three each."""

    def make():
        box = []
        return lambda: box

    return [make() for _ in range(count // 4)]  # and the list in the cell


SHAPES = {"random graph": random_graph, "instances": instances,
          "closures": closures, "empty lists": lists}


class Node:
    def __init__(self, tensor):
        self.tensor = tensor
        self.link = None


def rings(count, torch=None, device="cpu"):
    """`count` dead objects in rings of ten; with torch one of the ten is a tensor."""
    for _ in range(count // 10):
        ring = [[] for _ in range(10 if torch is None else 9)]
        for i, item in enumerate(ring):
            item.append(ring[i - 1])
        if torch is not None:
            ring[0].append(torch.empty(1, device=device))


def tensor_cycles(count, size, torch, device="cpu"):
    """`count` dead objects in cycles of `size` nodes that hold one tensor each cycle.

    A node is an instance; instance and tensor are what the collector tracks.
    """
    for _ in range(count // (size + 1)):
        nodes = [Node(None) for _ in range(size)]
        for i, node in enumerate(nodes):
            node.link = nodes[i - 1]
        nodes[0].tensor = torch.empty(64, device=device)
