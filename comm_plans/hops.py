"""The hops of a plan as flat arrays: which links each crosses, how much it carries, how early it can go.

A plan nests trees, edges and paths; the simulator, the pipeline and the exports ask about links and levels. This is
the one place that unrolls the former into the latter, quickly enough for 1024 ranks (a million hops).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, pairwise
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comm_plans.plan import Plan, Tree

Integers = NDArray[Any]  # int64, or Python integers where the plan's fractions need more than 62 bits


@dataclass(frozen=True)
class Hops:
    """Hops of a plan (H of them), their crossings of links (K) and the L links of its topology.

    links: L pairs of node indices, in the topology's order. bandwidth: L, GB/s.
    level: H, the step in which the first byte can make the hop (0 = at once), or the plan's own step.
    latency: H, seconds, or NaN where no link of the hop states one.
    hop, link: K, the hop and the link of each crossing. units: K, what crosses, in multiples of `unit`.
    unit: the share of the full buffer that one unit is.
    """

    links: tuple[tuple[int, int], ...]
    bandwidth: tuple[Fraction, ...]
    level: NDArray[np.int64]
    latency: NDArray[np.float64]
    hop: NDArray[np.int64]
    link: NDArray[np.int64]
    units: Integers
    unit: Fraction

    @property
    def levels(self) -> int:
        """Number of levels: the steps that the first byte needs to reach the last rank."""
        return int(self.level.max()) + 1 if len(self.level) else 0

    def loads(self) -> Integers:
        """Units that cross each link over the whole collective; shape (L,)."""
        total = np.zeros(len(self.links), dtype=self.units.dtype)
        np.add.at(total, self.link, self.units)
        return total

    def loads_by_level(self) -> Integers:
        """Units that cross each link in each level; shape (levels, L)."""
        loads = np.zeros((self.levels, len(self.links)), dtype=self.units.dtype)
        np.add.at(loads, (self.level[self.hop], self.link), self.units)
        return loads

    def latency_by_level(self, default: float) -> NDArray[np.float64]:
        """The slowest hop of each level in seconds, `default` for hops that state no latency; shape (levels,)."""
        slowest = np.zeros(self.levels)
        np.maximum.at(slowest, self.level, np.where(np.isnan(self.latency), default, self.latency))
        return slowest


def unroll(plan: Plan) -> Hops:
    """The hops of `plan`, tree after tree as `aligned` gives them."""
    trees = aligned(plan)
    paths = [path for tree in trees for path in tree.paths]
    lengths = np.fromiter(map(len, paths), dtype=np.int64, count=len(paths)) - 1
    crossed = _crossed_links(plan, paths, lengths)
    unit, units = _units(trees, len(crossed))
    per_hop = np.repeat(units, [len(tree.paths) for tree in trees])
    hop = np.repeat(np.arange(len(paths)), lengths)
    levels = chain.from_iterable(tree_levels(trees))
    return Hops(
        links=tuple(plan.topology.capacities),
        bandwidth=tuple(plan.topology.capacities.values()),
        level=np.fromiter(levels, dtype=np.int64, count=len(paths)),
        latency=_hop_latencies(plan, hop, crossed, len(paths)),
        hop=hop,
        link=crossed,
        units=per_hop[hop],
        unit=unit,
    )


def _crossed_links(plan: Plan, paths: Sequence[tuple[int, ...]], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The position in the topology's links of each link that each path crosses, path after path."""
    nodes = np.fromiter(chain.from_iterable(paths), dtype=np.int64, count=int(lengths.sum()) + len(paths))
    ends = np.zeros(len(nodes), dtype=bool)
    ends[np.cumsum(lengths + 1) - 1] = True
    size = len(plan.topology.nodes)
    codes = np.array([source * size + target for source, target in plan.topology.capacities])
    order = np.argsort(codes)
    crossed = (nodes[:-1] * size + nodes[1:])[~ends[:-1]]
    positions: NDArray[np.int64] = order[np.searchsorted(codes[order], crossed)]
    return positions


def aligned(plan: Plan) -> tuple[Tree, ...]:
    """The plan's trees; where an all_reduce cuts its buffer differently on the way up and on the way down, its trees
    are cut further until each reduce tree has a broadcast tree of the same root and interval."""
    if plan.collective != "all_reduce":
        return plan.trees
    ends = sorted({point for tree in plan.trees for point in (tree.start, tree.start + tree.share)})
    return tuple(piece for tree in plan.trees for piece in _cut(tree, ends))


def _cut(tree: Tree, ends: Sequence[Fraction]) -> Iterator[Tree]:
    inside = ends[bisect_left(ends, tree.start) : bisect_right(ends, tree.start + tree.share)]
    for start, end in pairwise(inside):
        yield replace(tree, start=start, share=end - start)


def tree_levels(trees: Sequence[Tree]) -> list[Sequence[int]]:
    """For each tree the level of each of its hops: its own steps where it has some, else the earliest ones possible.

    A hop goes as soon as its tail holds the data (broadcast) or all of its partial sums (reduce); the broadcast trees
    of an all_reduce start when the sum of their interval stands at their root.
    """
    levels: list[Sequence[int]] = []
    summed: defaultdict[tuple[int, Fraction], int] = defaultdict(int)
    for tree in trees:
        if tree.steps is None and tree.operation == "reduce":
            own = _earliest(tree, 0)
            summed[tree.root, tree.start] = max(own, default=-1) + 1
    for tree in trees:
        first = summed[tree.root, tree.start] if tree.operation == "broadcast" else 0
        levels.append(tree.steps if tree.steps is not None else _earliest(tree, first))
    return levels


def _earliest(tree: Tree, first: int) -> list[int]:
    """Earliest level of each hop; `paths` are in execution order, so whatever a hop waits for came before it."""
    ready: dict[int, int] = {}
    levels = []
    for path in tree.paths:
        level = ready.get(path[0], first)
        levels.append(level)
        ready[path[-1]] = max(ready.get(path[-1], first), level + 1)
    return levels


def _units(trees: Sequence[Tree], crossings: int) -> tuple[Fraction, Integers]:
    denominator = lcm(*{tree.share.denominator for tree in trees})
    units = [int(tree.share * denominator) for tree in trees]
    small = denominator * max(crossings, 1) < 2**62
    return Fraction(1, denominator), np.array(units, dtype=np.int64 if small else object)


def _hop_latencies(plan: Plan, hop: NDArray[np.int64], link: NDArray[np.int64], hops: int) -> NDArray[np.float64]:
    """Stated latencies of a hop's links added up; NaN where none of them states one."""
    topology = plan.topology
    stated = {(topology.index(each.source), topology.index(each.target)): each.latency for each in topology.links}
    latency = np.array([np.nan if (value := stated[pair]) is None else float(value) for pair in topology.capacities])
    total = np.bincount(hop, weights=np.nan_to_num(latency)[link], minlength=hops)
    known = np.bincount(hop, weights=~np.isnan(latency)[link], minlength=hops)
    return np.where(known > 0, total, np.nan)
