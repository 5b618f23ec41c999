"""all_reduce: reduce_scatter then all_gather where that is optimal, else roots and links divided by a linear program.

Unequal ranks gain from unequal roots (ForestColl, arXiv 2402.06787; the program is in `division`), switches that add
and copy gain from trees that meet in them. At every point of the buffer one reduce tree and one broadcast tree share
their root.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

from comm_plans.errors import TopologyError
from comm_plans.forest.all_gather import all_gather, reduce_scatter
from comm_plans.forest.division import Division, divide
from comm_plans.forest.families import Family, all_but_alike, is_mirrored, plain_or_all, relaxed_family
from comm_plans.forest.optimum import find_optimum
from comm_plans.forest.outcome import Outcome, reversed_trees
from comm_plans.forest.partitions import partition_bound
from comm_plans.forest.parts import part_trees
from comm_plans.forest.trimming import switch_surplus
from comm_plans.forest.weighted import root_weights
from comm_plans.topology import Topology

Operations = tuple[str, ...]


def all_reduce(
    topology: Topology, trees_per_rank: int | None = None, tolerance: Fraction = Fraction(0), symmetric: bool = True
) -> Outcome:
    """Trees that add every rank's buffer up and hand out the sum.

    `trees_per_rank` asks for reduce_scatter + all_gather with exactly that many trees; `tolerance` accepts it within
    that relative distance of the optimum; `symmetric` is as in all_gather. The outcome's `optimum` is proved to be
    reachable, except with switches that add or copy, and beyond the size of the linear program: there it is the best
    upper bound known. Raises TopologyError for a network beyond that size with unbalanced switches.
    """
    two_phases, bound = _two_phase_rate(topology), _upper_bound(topology)
    if two_phases == bound:
        return _two_phases(topology, bound, trees_per_rank, tolerance, symmetric)
    division, optimum = _best_division(topology, bound)
    if division is None and not two_phases:
        raise TopologyError(f"{topology.name} is too large to trim; lower the links out of its unbalanced switches")
    if division is None or trees_per_rank is not None or two_phases * (1 + tolerance) >= division.rate:
        return _two_phases(topology, optimum, trees_per_rank, tolerance, symmetric)
    return _divided(topology, division, optimum)


def _upper_bound(topology: Topology) -> Fraction:
    """algbw in GB/s that nothing exceeds: between groups of ranks, and out of and into any set of nodes."""
    first = root_weights(len(topology.ranks), 0)
    return min(partition_bound(topology), *(1 / inverse_rate for inverse_rate in _inverse_rates(topology, first)))


def _two_phase_rate(topology: Topology) -> Fraction:
    """algbw in GB/s that reduce_scatter and all_gather reach one after the other; 0 where switches prevent them."""
    if any(switch_surplus(topology).values()):
        return Fraction(0)
    return len(topology.ranks) / sum(_inverse_rates(topology, (1,) * len(topology.ranks)), Fraction(0))


def _inverse_rates(topology: Topology, weights: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Seconds a GB per unit of weight, to send from the ranks and to add up at them."""
    along, against = topology.capacities, {(v, u): bandwidth for (u, v), bandwidth in topology.capacities.items()}
    send, add = (find_optimum(links, dict(enumerate(weights)), len(topology.nodes)) for links in (along, against))
    return send.inverse_rate, add.inverse_rate


def _two_phases(
    topology: Topology, optimum: Fraction, trees: int | None, tolerance: Fraction, symmetric: bool
) -> Outcome:
    size = len(topology.ranks), len(topology.nodes)
    gather = all_gather(topology.capacities, *size, trees, tolerance, symmetric)
    if is_mirrored(topology):
        scattered, same = reversed_trees(gather.trees), True
    else:
        scatter = reduce_scatter(topology.capacities, *size, trees, tolerance, symmetric)
        scattered, same = scatter.trees, scatter.trees_per_rank == gather.trees_per_rank
    return Outcome(
        scattered + gather.trees, gather.shards, optimum, gather.cut, gather.trees_per_rank if same else None
    )


def _best_division(topology: Topology, bound: Fraction) -> tuple[Division | None, Fraction]:
    """The best division found, and the optimum or the least upper bound on it in GB/s."""
    operations = [("broadcast", "reduce")] if is_mirrored(topology) else [("broadcast",), ("reduce",)]
    simple, anything = (
        _families(topology, operations, plain_or_all),
        [relaxed_family(topology, each) for each in operations],
    )
    division = _division(topology, simple)
    if simple == anything or _rate(division) == bound:
        return division, _rate(division) or bound
    ceiling = min(bound, _rate(_division(topology, anything)) or bound)
    if _rate(division) == ceiling:
        return division, ceiling
    mixed = _division(topology, _families(topology, operations, all_but_alike))
    return max(division, mixed, key=_rate), ceiling


def _rate(division: Division | None) -> Fraction:
    return Fraction(0) if division is None else division.rate


def _division(topology: Topology, families: Sequence[Family]) -> Division | None:
    return divide(topology.capacities, len(topology.nodes), families)


def _families(
    topology: Topology, operations: Sequence[Operations], choose: Callable[[Topology, Operations], list[Family]]
) -> list[Family]:
    return [chosen for each in operations for chosen in choose(topology, each)]


def _divided(topology: Topology, division: Division, optimum: Fraction) -> Outcome:
    """Every root's part of the buffer in proportion to its rate, added up and handed out by the division's trees."""
    broadcasts = [part for part in division.parts if "broadcast" in part.family.operations]
    reduces = [part for part in division.parts if "reduce" in part.family.operations]
    rates = [sum((part.roots.get(rank, Fraction(0)) for part in broadcasts), Fraction(0)) for rank in _ranks(topology)]
    starts = dict(enumerate(accumulate((rate / division.rate for rate in rates[:-1]), initial=Fraction(0))))
    down = part_trees(broadcasts, len(topology.nodes), division.rate, starts)
    up = down if broadcasts == reduces else part_trees(reduces, len(topology.nodes), division.rate, starts)
    shards = tuple(rate / division.rate for rate in rates)
    return Outcome(reversed_trees(up) + down, shards, optimum, division.near_side, None)


def _ranks(topology: Topology) -> range:
    return range(len(topology.ranks))
