"""all_gather and reduce_scatter: from a network to the trees that reach its optimum (ForestColl, §4)."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from comm_plans.errors import TopologyError
from comm_plans.forest.few_trees import (
    least_scales,
    optimal_tree_counts,
    sufficient_trees,
    whole_capacities,
)
from comm_plans.forest.general import CapacityLost, pack_forest
from comm_plans.forest.optimum import Arc, find_optimum
from comm_plans.forest.outcome import Outcome, broadcast_trees, reversed_trees

Bandwidths = Mapping[Arc, Fraction]


def all_gather(
    bandwidths: Bandwidths, ranks: int, nodes: int, trees_per_rank: int | None = None, tolerance: Fraction = Fraction(0)
) -> Outcome:
    """Trees from every rank to all others. `bandwidths` in GB/s by node indices; nodes 0..ranks-1 are the ranks.

    Exactly `trees_per_rank` trees where that is given; else as few as the optimum needs, or as few as come within the
    relative `tolerance` of it.
    """
    weights = dict.fromkeys(range(ranks), 1)
    optimum = find_optimum(bandwidths, weights, nodes)
    for trees, scale in _attempts(bandwidths, weights, nodes, optimum.inverse_rate, trees_per_rank, tolerance):
        try:
            batches = pack_forest(whole_capacities(bandwidths, scale), dict.fromkeys(weights, trees), nodes)
        except CapacityLost:
            continue
        shards = (Fraction(1, ranks),) * ranks
        placed = broadcast_trees(batches, Fraction(1, ranks * trees), [Fraction(rank, ranks) for rank in range(ranks)])
        return Outcome(placed, shards, ranks / optimum.inverse_rate, optimum.cut, trees)
    raise TopologyError(f"no {trees_per_rank} trees per rank were found; leave the number of trees open")


def reduce_scatter(
    bandwidths: Bandwidths, ranks: int, nodes: int, trees_per_rank: int | None = None, tolerance: Fraction = Fraction(0)
) -> Outcome:
    """The all_gather of the reversed network, played backwards (ForestColl, §5.6)."""
    reversed_links = {(v, u): bandwidth for (u, v), bandwidth in bandwidths.items()}
    mirror = all_gather(reversed_links, ranks, nodes, trees_per_rank, tolerance)
    outside = tuple(node for node in range(nodes) if node not in mirror.cut)
    return Outcome(reversed_trees(mirror.trees), mirror.shards, mirror.optimum, outside, mirror.trees_per_rank)


def _attempts(
    bandwidths: Bandwidths,
    weights: Mapping[int, int],
    nodes: int,
    inverse_rate: Fraction,
    trees_per_rank: int | None,
    tolerance: Fraction,
) -> Iterator[tuple[int, Fraction]]:
    """Numbers of trees per rank and scales to try, the preferred first."""
    if trees_per_rank is not None:
        for scale in least_scales(bandwidths, weights, nodes, trees_per_rank, inverse_rate):
            yield trees_per_rank, scale
        return
    if tolerance:
        for trees in range(1, sufficient_trees(bandwidths, inverse_rate)):
            scale = next(least_scales(bandwidths, weights, nodes, trees, inverse_rate))
            if scale <= inverse_rate * trees * (1 + tolerance):
                yield trees, scale
    for trees in optimal_tree_counts(bandwidths, weights, nodes, inverse_rate):
        yield trees, inverse_rate * trees
