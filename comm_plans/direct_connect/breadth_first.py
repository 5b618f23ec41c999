"""What breadth-first broadcast costs, exactly: each shard arrives over shortest ways only, steps are synchronous.

In step t node u takes in every shard that lies t hops away, from neighbours t − 1 hops away from it. The least load of
its busiest link is, by the fractional Hall condition, the largest ratio over sets S of links into u of the shards
that can come over S alone to the weight of S; a step lasts as long as the worst node (arXiv 2202.03356, § on BFB;
the closed form replaces its linear program).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from comm_plans.direct_connect.graphs import Graph, Indices
from comm_plans.errors import Disconnected

Hops = NDArray[np.int16]
MOST_LINKS = 10  # into one node, up to which all sets are weighed; above it flows decide


@dataclass(frozen=True, eq=False)
class Links:
    """Links sorted by target: those into u are `starts[u] … starts[u + 1]`. Weights are bandwidths in `unit` GB/s."""

    starts: Indices
    sources: Indices
    weights: Indices
    receivers: Indices
    unit: Fraction = Fraction(1)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.starts) - 1

    @property
    def targets(self) -> Indices:
        """Target of each link."""
        return np.repeat(np.arange(self.nodes), np.diff(self.starts))

    @property
    def most_into_one(self) -> int:
        """The largest number of links into one node."""
        return int(np.diff(self.starts).max())


@dataclass(frozen=True)
class Cost:
    """Load of the busiest link in each step, in whole shards a unit of weight; `returns` is the distance from the head
    of an arc back to its tail where that is the same for all arcs."""

    loads: tuple[Fraction, ...]
    returns: int | None

    @property
    def steps(self) -> int:
        """T_L, the number of synchronous steps."""
        return len(self.loads)

    def bandwidth_time(self, nodes: int, degree: int) -> Fraction:
        """T_B in M/B: M bytes of result, B the bandwidth of all `degree` ports of a node, wasted ones included."""
        return sum(self.loads, Fraction(0)) * degree / nodes


def links_of(graph: Graph) -> Links:
    """The arcs of a graph without loops, parallel ones as one link of their number as weight."""
    sources, targets = graph.arcs[:, 0], graph.arcs[:, 1]
    codes = (targets * graph.nodes + sources)[sources != targets]
    return _links(codes, np.ones(len(codes), dtype=np.int64), graph.nodes, graph.representatives, Fraction(1))


def links_between(capacities: Mapping[tuple[int, int], Fraction], nodes: int) -> Links:
    """The links of a network without switches; weights are coprime whole numbers."""
    scale = lcm(*(value.denominator for value in capacities.values()))
    divisor = gcd(*(int(value * scale) for value in capacities.values()))
    weights = np.array([int(value * scale) // divisor for value in capacities.values()], dtype=np.int64)
    codes = np.array([target * nodes + source for source, target in capacities], dtype=np.int64)
    return _links(codes, weights, nodes, np.arange(nodes), Fraction(divisor, scale))


def _links(codes: Indices, weights: Indices, nodes: int, receivers: Indices, unit: Fraction) -> Links:
    order = np.argsort(codes, kind="stable")
    distinct, first = np.unique(codes[order], return_index=True)
    targets, sources = np.divmod(distinct, nodes)
    summed = np.add.reduceat(weights[order], first)
    return Links(np.searchsorted(targets, np.arange(nodes + 1)), sources, summed, receivers, unit)


def breadth_first_cost(links: Links) -> Cost:
    """The exact cost of breadth-first all_gather. Raises Disconnected where some node cannot be reached."""
    from comm_plans.direct_connect.kernels import tightest_sets
    from comm_plans.direct_connect.splits import least_loads

    rows, distances = _distances(links)
    check_reach(distances)
    steps = int(distances[rows[links.receivers]].max())
    if links.most_into_one <= MOST_LINKS:
        arguments = links.starts, links.sources, links.weights, links.receivers, rows, distances, steps
        loads = [Fraction(int(shards), int(weight)) for shards, weight in tightest_sets(*arguments)]
    else:
        loads = least_loads(links, rows, distances, steps)
    return Cost(tuple(loads), _uniform_return(links, rows, distances))


def _distances(links: Links) -> tuple[Indices, Hops]:
    """Hops to the receivers and the senders of their links, a row each, and the row of every node that has one."""
    from comm_plans.direct_connect.kernels import all_distances, distances_to

    receiving = np.isin(links.targets, links.receivers)
    needed = np.unique(np.concatenate([links.receivers, links.sources[receiving]]))
    if 2 * len(needed) > links.nodes:
        return np.arange(links.nodes), all_distances(links.starts, links.sources)
    rows = np.full(links.nodes, -1, dtype=np.int64)
    rows[needed] = np.arange(len(needed))
    return rows, distances_to(links.starts, links.sources, needed)


def check_reach(distances: Hops) -> None:
    """Raise Disconnected unless every node reaches every target."""
    if (distances < 0).any():
        lost = int(np.argwhere(distances < 0)[0][1])
        raise Disconnected(f"the wiring falls apart: g{lost} does not reach all other nodes; add links out of it")


def _uniform_return(links: Links, rows: Indices, distances: Hops) -> int | None:
    """Hops back along every link, if they are equally many: what the line graph's cost can gain from."""
    receiving = np.flatnonzero(np.isin(links.sources, links.receivers))
    sources, targets = links.sources[receiving], links.targets[receiving]
    ways = set(distances[rows[sources], targets].tolist())
    return ways.pop() if len(ways) == 1 else None
