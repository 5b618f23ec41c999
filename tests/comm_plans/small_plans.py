"""Small plans by hand, for tests that need a right plan and no solver: rings and random trees."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from comm_plans.plan import Plan, Tree
from comm_plans.topology import Link, Topology


def full_mesh(ranks: int, bandwidth: Fraction = Fraction(10)) -> Topology:
    """Every rank linked to every other one, two ranks a host."""
    names = tuple(f"g{rank}" for rank in range(ranks))
    links = tuple(Link(one, other, bandwidth) for one in names for other in names if one != other)
    return Topology(f"mesh{ranks}", names, (), links, {f"h{i}": names[2 * i : 2 * i + 2] for i in range(ranks // 2)})


def ring(ranks: int, bandwidth: Fraction = Fraction(10), latency: Fraction | None = None) -> Topology:
    """A one-way ring."""
    names = tuple(f"g{rank}" for rank in range(ranks))
    links = tuple(Link(names[rank], names[(rank + 1) % ranks], bandwidth, latency) for rank in range(ranks))
    return Topology(f"ring{ranks}", names, (), links)


def ring_all_gather(ranks: int, bandwidth: Fraction = Fraction(10), latency: Fraction | None = None) -> Plan:
    """The ring algorithm: each shard goes all the way round. Its algbw is N / (N − 1) times the bandwidth."""
    share = Fraction(1, ranks)
    trees = tuple(
        Tree("broadcast", root, root * share, share, tuple(pairwise([(root + i) % ranks for i in range(ranks)])))
        for root in range(ranks)
    )
    return planned("all_gather", ring(ranks, bandwidth, latency), trees)


def random_plan(collective: str, ranks: int, seed: int, trees_a_root: int = 2) -> Plan:
    """Random spanning trees of unequal shares on a full mesh; an all_reduce goes up and down on different trees."""
    chance = random.Random(seed)
    root = chance.randrange(ranks) if collective in ("broadcast", "reduce") else None
    roots = range(ranks) if root is None else [root]
    operations = {"all_reduce": ("reduce", "broadcast"), "reduce": ("reduce",), "reduce_scatter": ("reduce",)}
    trees = [
        _random_tree(chance, operation, each, ranks, position, len(roots), part, trees_a_root)
        for operation in operations.get(collective, ("broadcast",))
        for position, each in enumerate(roots)
        for part in range(trees_a_root + (operation == "reduce"))
    ]
    return planned(collective, full_mesh(ranks), tuple(trees), root)


def _random_tree(chance, operation, root, ranks, position, roots, part, trees_a_root) -> Tree:
    parts = trees_a_root + (operation == "reduce")
    total = parts * (parts + 1) // 2
    share = Fraction(part + 1, total) / roots
    start = Fraction(position, roots) + Fraction(part * (part + 1) // 2, total) / roots
    order = [root, *chance.sample([rank for rank in range(ranks) if rank != root], ranks - 1)]
    edges = [(chance.choice(order[:place]), order[place]) for place in range(1, ranks)]
    if operation == "reduce":
        edges = [(child, parent) for parent, child in reversed(edges)]
    return Tree(operation, root, start, share, tuple(edges))


def planned(collective: str, topology: Topology, trees: tuple[Tree, ...], root: int | None = None) -> Plan:
    """A plan whose algbw is that of its own loads; nothing is claimed about the optimum."""
    loads: Counter[tuple[int, int]] = Counter()
    for tree in trees:
        for path in tree.paths:
            for link in pairwise(path):
                loads[link] += tree.share
    algbw = 1 / max(load / topology.capacities[link] for link, load in loads.items())
    shards = (Fraction(1, len(topology.ranks)),) * len(topology.ranks)
    plan = Plan(collective, topology, trees, shards, algbw, False, algbw, (), None, "hand", root)
    return replace(plan, optimum=algbw * 2)
