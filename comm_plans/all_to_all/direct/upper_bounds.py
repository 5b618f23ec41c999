"""Simple upper bounds on the rate of a pair when all pairs send the same: reasons that explain an optimum, or do not.

Source of the bounds: arXiv 2309.13541 (distance, cut) and E. F. Moore's count of what d-way branching can reach. The
exact bound of a network is that of `lower_bound`.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from comm_plans.all_to_all.direct.flow_problem import links_of
from comm_plans.all_to_all.direct.paths import hops_between
from comm_plans.errors import PlansError
from comm_plans.topology import Topology

MOST_NODES_CUT = 18


def distance_bound(topology: Topology) -> Fraction:
    """Each pair takes up its distance in links; all links together have so much bandwidth."""
    hops = hops_between(topology)[:, : len(topology.ranks)]
    return sum(topology.capacities.values(), Fraction(0)) / int(hops.sum())


def node_bound(topology: Topology) -> Fraction:
    """N − 1 flows leave each rank and N − 1 enter it."""
    ranks = len(topology.ranks)
    leaving, entering = [Fraction(0)] * len(topology.nodes), [Fraction(0)] * len(topology.nodes)
    for (tail, head), bandwidth in topology.capacities.items():
        leaving[tail] += bandwidth
        entering[head] += bandwidth
    return min(*leaving[:ranks], *entering[:ranks]) / (ranks - 1)


def moore_bound(ranks: int, degree: int) -> Fraction:
    """No network of `ranks` nodes with `degree` links of 1 GB/s each is faster: at most degree^k are k hops away."""
    travelled, left, hops, level = 0, ranks - 1, 0, 1
    while left:
        hops, level = hops + 1, level * degree
        travelled += hops * min(level, left)
        left -= min(level, left)
    return Fraction(degree, travelled)


def cut_bound(topology: Topology) -> tuple[Fraction, tuple[str, ...]]:
    """The narrowest cut for what has to cross it, and the nodes on its sending side, over all cuts of the network.

    Raises PlansError for more than 18 nodes, whose cuts are too many.
    """
    count, ranks = len(topology.nodes), len(topology.ranks)
    if count > MOST_NODES_CUT:
        raise PlansError(f"{topology.name} has {count} nodes; all cuts are tried up to {MOST_NODES_CUT} nodes only")
    unit = lcm(*(bandwidth.denominator for bandwidth in topology.capacities.values()))
    sides = np.arange(1, 2**count - 1)
    inside = (sides[:, None] >> np.arange(count) & 1).astype(bool)
    crossing = np.zeros(len(sides))
    for (tail, head), bandwidth in zip(links_of(topology), topology.capacities.values(), strict=True):
        crossing += float(bandwidth * unit) * (inside[:, tail] & ~inside[:, head])
    senders = inside[:, :ranks].sum(axis=1)
    pairs = senders * (ranks - senders)
    narrowest = int(np.argmin(np.where(pairs > 0, crossing / np.maximum(pairs, 1), np.inf)))
    side = tuple(name for name, within in zip(topology.nodes, inside[narrowest], strict=True) if within)
    return Fraction(round(crossing[narrowest])) / unit / int(pairs[narrowest]), side
