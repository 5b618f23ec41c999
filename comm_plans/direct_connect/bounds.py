"""How fast a collective can be at all on a network without switches, to say how good a stepped plan is."""

from __future__ import annotations

from fractions import Fraction

from comm_plans.forest.optimum import Arc, find_optimum
from comm_plans.forest.partitions import partition_bound
from comm_plans.topology import Topology


def best_bound(topology: Topology, collective: str, reached: Fraction) -> tuple[Fraction, tuple[str, ...]]:
    """algbw in GB/s that no plan exceeds and the nodes on one side of the cut that shows it; for all_reduce, whose
    bound is no single cut, those of its all_gather half.

    reached: where a single rank's links already limit the network to this, no other cut is looked for.
    """
    links = topology.capacities
    if collective == "reduce_scatter":
        links = {(target, source): bandwidth for (source, target), bandwidth in links.items()}
    bound, cut = _narrowest_rank(links, len(topology.ranks))
    if collective == "all_reduce":
        bound = partition_bound(topology)
    elif bound != reached:
        optimum = find_optimum(links, dict.fromkeys(range(len(topology.ranks)), 1), len(topology.nodes))
        bound, cut = len(topology.ranks) / optimum.inverse_rate, optimum.cut
    return bound, tuple(topology.nodes[node] for node in cut)


def _narrowest_rank(links: dict[Arc, Fraction], ranks: int) -> tuple[Fraction, tuple[int, ...]]:
    """All shards but its own must enter every rank: the bound of the rank with the least bandwidth into it."""
    entering = [Fraction(0)] * ranks
    for (_, target), bandwidth in links.items():
        entering[target] += bandwidth
    narrowest = min(range(ranks), key=entering.__getitem__)
    return entering[narrowest] * ranks / (ranks - 1), (narrowest,)
