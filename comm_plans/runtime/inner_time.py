"""How long gloo's own collectives take on a network: what a plan has to beat.

As torch ships gloo, all_reduce is a ring in direction −1 (reduce-scatter, then all-gather), all_gather a
ring in direction +1, reduce_scatter an all_reduce whose result is cut, broadcast a binomial tree, reduce a ring
reduce-scatter and a gather. Ranks follow in rank order and messages take a shortest way, as IP routing does.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from comm_plans.topology import Topology

Flow = tuple[int, int]


@dataclass(frozen=True)
class Stage:
    """Flows between ranks at the same time, each of `share` of the full buffer, in `steps` one after another."""

    flows: tuple[Flow, ...]
    share: Fraction
    steps: int

    def seconds_per_gigabyte(self, topology: Topology) -> Fraction:
        """Seconds that the fullest link needs for a full buffer of 10⁹ bytes."""
        loads: defaultdict[tuple[int, int], int] = defaultdict(int)
        neighbours = _neighbours(topology)
        for source, target in self.flows:
            for link in pairwise(_shortest_way(neighbours, source, target)):
                loads[link] += 1
        return max(self.share * count / topology.capacities[link] for link, count in loads.items())

    def traffic(self) -> Fraction:
        """Shares of the full buffer that the busiest rank sends and receives."""
        ends: defaultdict[int, int] = defaultdict(int)
        for flow in self.flows:
            for rank in flow:
                ends[rank] += 1
        return self.share * max(ends.values())


def stages(collective: str, ranks: int, root: int | None = None) -> tuple[Stage, ...]:
    """What gloo does for `collective` among `ranks` (two or more)."""
    around = Fraction(ranks - 1, ranks)
    if collective == "all_gather":
        return (Stage(ring(ranks, 1), around, ranks - 1),)
    if collective == "broadcast":
        return tuple(Stage(flows, Fraction(1), 1) for flows in _binomial_rounds(ranks, root or 0))
    if collective == "reduce":
        to_root = tuple((rank, root or 0) for rank in range(ranks) if rank != (root or 0))
        return Stage(ring(ranks, -1), around, ranks - 1), Stage(to_root, Fraction(1, ranks), 1)
    return (Stage(ring(ranks, -1), 2 * around, 2 * (ranks - 1)),)


def ring(ranks: int, direction: int) -> tuple[Flow, ...]:
    """Each rank to the next one in rank order."""
    return tuple((rank, (rank + direction) % ranks) for rank in range(ranks))


def _neighbours(topology: Topology) -> dict[int, list[int]]:
    heads: defaultdict[int, list[int]] = defaultdict(list)
    for tail, head in topology.capacities:
        heads[tail].append(head)
    return heads


def _shortest_way(neighbours: Mapping[int, Sequence[int]], source: int, target: int) -> list[int]:
    """Nodes from `source` to `target` over the fewest links; among equal ways the one over the lowest nodes."""
    before = {source: source}
    waiting = deque([source])
    while target not in before:
        node = waiting.popleft()
        for head in neighbours[node]:
            if head not in before:
                before[head] = node
                waiting.append(head)
    return list(_traced(before, source, target))[::-1]


def _traced(before: Mapping[int, int], source: int, target: int) -> Iterator[int]:
    while target != source:
        yield target
        target = before[target]
    yield source


def _binomial_rounds(ranks: int, root: int) -> Iterator[tuple[Flow, ...]]:
    """Round by round, twice as many ranks hold the data; numbers count from the root."""
    holders = 1
    while holders < ranks:
        pairs = ((first, first + holders) for first in range(holders) if first + holders < ranks)
        yield tuple(((root + first) % ranks, (root + second) % ranks) for first, second in pairs)
        holders *= 2
