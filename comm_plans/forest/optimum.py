"""The exact optimum of a network: the worst ratio of shards inside a cut to the bandwidth that leaves it.

inverse rate = max over cuts S that leave out a terminal of  weight(S) / B+(S)     (ForestColl: throughput optimality)

found by discrete Newton steps on integer max-flows: each violated min cut is a strictly worse real cut, so the
search ends after a few steps, exact, with the cut in hand that limits the network.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from comm_plans.errors import TooFine
from comm_plans.max_flow import Network

Arc = tuple[int, int]


@dataclass(frozen=True)
class Optimum:
    """`inverse_rate`: seconds per GB of one unit of weight; `cut`: the nodes on the sending side of the tight cut."""

    inverse_rate: Fraction
    cut: tuple[int, ...]


def integers(bandwidths: Mapping[Arc, Fraction]) -> tuple[dict[Arc, int], Fraction]:
    """Coprime integer capacities proportional to the bandwidths, and the factor that was applied."""
    common = lcm(*(bandwidth.denominator for bandwidth in bandwidths.values()))
    whole = {arc: int(bandwidth * common) for arc, bandwidth in bandwidths.items()}
    divisor = gcd(*whole.values())
    return {arc: value // divisor for arc, value in whole.items()}, Fraction(common, divisor)


def find_optimum(bandwidths: Mapping[Arc, Fraction], weights: Mapping[int, int], nodes: int) -> Optimum:
    """The optimum for terminals `weights` (node → units of data it holds, 0 allowed); all other nodes are switches.

    Every terminal with data must reach every other terminal.
    """
    capacities, factor = integers(bandwidths)
    best = max((cut_ratio(capacities, weights, cut), cut) for cut in _single_node_cuts(weights, nodes))
    while True:
        cut = violated_cut(capacities, weights, nodes, best[0])
        if cut is None:
            return Optimum(best[0] * factor, tuple(sorted(best[1])))
        best = (cut_ratio(capacities, weights, cut), cut)


def cut_ratio(capacities: Mapping[Arc, int], weights: Mapping[int, int], cut: tuple[int, ...]) -> Fraction:
    """Weight inside the cut over the capacity that leaves it; 0 for a cut without weight."""
    inside = set(cut)
    weight = sum(weights.get(node, 0) for node in inside)
    leaving = sum(capacity for (u, v), capacity in capacities.items() if u in inside and v not in inside)
    return Fraction(weight, leaving) if weight else Fraction(0)


def violated_cut(
    capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int, inverse_rate: Fraction
) -> tuple[int, ...] | None:
    """A cut whose ratio exceeds `inverse_rate`, or None if every terminal can receive all data at that rate."""
    scale, unit = inverse_rate.numerator, inverse_rate.denominator
    network = flow_network(
        {arc: scale * capacity for arc, capacity in capacities.items()},
        {node: unit * weight for node, weight in weights.items()},
        nodes,
    )
    if network.least_excess([nodes], list(weights), unit * sum(weights.values()), 0) >= 0:
        return None
    return tuple(node for node in network.near_side() if node != nodes)


def flow_network(capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> Network:
    """The network D of the paper: the links, and one more node `nodes` with an arc of each terminal's weight to it."""
    if sum(capacities.values()) + sum(weights.values()) >= 2**62:
        raise TooFine("the bandwidths need more than 62 bits together; round them to a coarser grid")
    network = Network(nodes + 1)
    for node, weight in weights.items():
        if weight:
            network.set_capacity(nodes, node, weight)
    for (u, v), capacity in capacities.items():
        network.set_capacity(u, v, capacity)
    return network


def _single_node_cuts(weights: Mapping[int, int], nodes: int) -> list[tuple[int, ...]]:
    everything = range(nodes)
    senders = [(node,) for node, weight in weights.items() if weight]
    receivers = [tuple(other for other in everything if other != node) for node in weights]
    return senders + receivers
