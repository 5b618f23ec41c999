"""Routes of an all-to-all: for each pair of ranks the paths its data takes, and what part of it takes each.

Parts are integers over one denominator, so that what a link carries, and with it the rate that routes reach, is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain

import numpy as np

from comm_plans.all_to_all.direct.common_denominator import common_fractions
from comm_plans.all_to_all.direct.flow_problem import Floats, FlowProblem, Indices
from comm_plans.all_to_all.direct.widest_paths import widest_paths
from comm_plans.forest.symmetry import Permutation

MOST_COMMON = 2**20  # denominators beyond this are noise, and so many parts are fine enough
FINE = 2**40


@dataclass(frozen=True, eq=False)
class Routes:
    """pair: P × 2 nodes (from, to). share: P parts of the pair's data, out of `denominator`, that take the path. begin:
    P + 1 offsets into `arc`, the arcs of the paths one after the other."""

    pair: Indices
    share: Indices
    denominator: int
    begin: Indices
    arc: Indices

    def __len__(self) -> int:
        return len(self.pair)

    @property
    def hops(self) -> Indices:
        """Arcs of each path."""
        return np.diff(self.begin)

    def groups(self) -> Iterator[Indices]:
        """Places of the paths of each pair; paths of a pair lie side by side."""
        changes = np.flatnonzero((self.pair[1:] != self.pair[:-1]).any(axis=1)) + 1
        yield from np.split(np.arange(len(self)), changes)


def single_paths(pairs: Indices, arcs: list[list[int]]) -> Routes:
    """Routes of one path a pair. pairs: P × 2 nodes; arcs: those of each path."""
    begin = np.cumsum([0, *map(len, arcs)])
    return Routes(pairs, np.ones(len(pairs), dtype=np.int64), 1, begin, np.array([*chain.from_iterable(arcs)]))


def routes_of_flow(problem: FlowProblem, flow: Floats) -> Routes:
    """Take a flow apart; parts are fractions of a small denominator if they all look like it."""
    pair, width, begin, arc = widest_paths(problem, flow)
    routes = Routes(pair, np.zeros(len(pair), np.int64), 1, begin, arc)
    first = np.flatnonzero(np.append(True, (pair[1:] != pair[:-1]).any(axis=1)))
    total = np.repeat(np.add.reduceat(width, first), np.diff(np.append(first, len(pair))))
    return with_parts(routes, width / total)


def with_parts(routes: Routes, part: Floats) -> Routes:
    """The same paths with the parts given, which add up to 1 for each pair; rounding goes to a pair's largest part."""
    share, denominator = common_fractions(part, MOST_COMMON)
    if share is None:
        share, denominator = np.round(part * FINE).astype(np.int64), FINE
    for places in routes.groups():
        share[places[share[places].argmax()]] += denominator - share[places].sum()
    return without_empty(replace(routes, share=share, denominator=denominator))


def without_empty(routes: Routes) -> Routes:
    """The routes that carry something."""
    kept = routes.share > 0
    hops = routes.hops
    return Routes(
        pair=routes.pair[kept],
        share=routes.share[kept],
        denominator=routes.denominator,
        begin=np.concatenate([[0], np.cumsum(hops[kept])]),
        arc=routes.arc[np.repeat(kept, hops)],
    )


def loads(routes: Routes, demand: Indices, arcs: int) -> Indices:
    """What each arc carries, in 1/denominator units; demand: N × N units. Exact."""
    units = demand[routes.pair[:, 0], routes.pair[:, 1]]
    small = routes.denominator * int(units.max(initial=0)) * max(1, len(routes)) < 2**62
    carried = (routes.share * units) if small else routes.share.astype(object) * units.astype(object)
    total = np.zeros(arcs, dtype=carried.dtype)
    np.add.at(total, routes.arc, np.repeat(carried, routes.hops))
    return total


def everywhere(ends: Indices, routes: Routes, elements: Sequence[Permutation]) -> Iterator[Routes]:
    """The routes as each translation moves them; ends: A × 2 nodes of the arcs."""
    nodes = len(elements[0])
    place = np.zeros((nodes, nodes), dtype=np.int64)
    place[ends[:, 0], ends[:, 1]] = np.arange(len(ends))
    for element in elements:
        image = np.array(element)
        arcs = place[image[ends[:, 0]], image[ends[:, 1]]]
        yield replace(routes, pair=image[routes.pair], arc=arcs[routes.arc])


def joined(parts: list[Routes]) -> Routes:
    """Routes of different pairs, over the same denominator, as one."""
    return Routes(
        pair=np.concatenate([each.pair for each in parts]),
        share=np.concatenate([each.share for each in parts]),
        denominator=parts[0].denominator,
        begin=np.concatenate([[0], np.cumsum(np.concatenate([each.hops for each in parts]))]),
        arc=np.concatenate([each.arc for each in parts]),
    )


def slowest(load: Indices, capacity: tuple[Fraction, ...]) -> Fraction:
    """The time that the busiest arc needs: units by GB/s, exact."""
    busy = {pair for pair in zip(load.tolist(), capacity, strict=True) if pair[0]}
    return max((units / rate for units, rate in busy), default=Fraction(0))
