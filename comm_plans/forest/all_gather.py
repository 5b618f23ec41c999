"""all_gather and reduce_scatter: from a network to the trees that reach its optimum (ForestColl)."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import chain, islice

from comm_plans.errors import TopologyError
from comm_plans.forest.few_trees import (
    least_scales,
    optimal_tree_counts,
    sufficient_trees,
    whole_capacities,
)
from comm_plans.forest.general import CapacityLost, pack_forest
from comm_plans.forest.numbering import translations_of
from comm_plans.forest.optimum import Arc, find_optimum
from comm_plans.forest.outcome import Outcome, broadcast_trees, played_backwards
from comm_plans.forest.paths import PathBatch
from comm_plans.forest.routes import TooManyRoutes
from comm_plans.forest.shallow_trees import ShallowTrees

Bandwidths = Mapping[Arc, Fraction]
Attempt = tuple[int, Fraction]
"""Trees per rank, and the scale (seconds per GB times trees): a link of bandwidth b carries floor(scale · b) trees."""

SHALLOW_ATTEMPTS = 2
"""Numbers of trees for which shallow trees are looked for before depth is given up."""


def all_gather(
    bandwidths: Bandwidths,
    ranks: int,
    nodes: int,
    trees_per_rank: int | None = None,
    tolerance: Fraction = Fraction(0),
    symmetric: bool = True,
) -> Outcome:
    """Trees from every rank to all others. `bandwidths` in GB/s by node indices; nodes 0..ranks-1 are the ranks.

    Exactly `trees_per_rank` trees where that is given; else as few as the optimum needs, or as few as come within the
    relative `tolerance` of it. `symmetric`: look for shallow trees that are translations of each other first.
    """
    weights = dict.fromkeys(range(ranks), 1)
    optimum = find_optimum(bandwidths, weights, nodes)
    tries = attempts(bandwidths, weights, nodes, optimum.inverse_rate, trees_per_rank, tolerance)
    first = list(islice(tries, SHALLOW_ATTEMPTS))
    found = _shallow(bandwidths, ranks, nodes, first) if symmetric else None
    batches, trees = found or packed(bandwidths, weights, nodes, chain(first, tries))
    placed = broadcast_trees(batches, Fraction(1, ranks * trees), [Fraction(rank, ranks) for rank in range(ranks)])
    return Outcome(placed, (Fraction(1, ranks),) * ranks, ranks / optimum.inverse_rate, optimum.cut, trees)


def reduce_scatter(
    bandwidths: Bandwidths,
    ranks: int,
    nodes: int,
    trees_per_rank: int | None = None,
    tolerance: Fraction = Fraction(0),
    symmetric: bool = True,
) -> Outcome:
    """The all_gather of the reversed network, played backwards (ForestColl)."""
    return played_backwards(
        lambda links: all_gather(links, ranks, nodes, trees_per_rank, tolerance, symmetric), bandwidths, nodes
    )


def attempts(
    bandwidths: Bandwidths,
    weights: Mapping[int, int],
    nodes: int,
    inverse_rate: Fraction,
    trees_per_rank: int | None,
    tolerance: Fraction,
) -> Iterator[Attempt]:
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


def packed(
    bandwidths: Bandwidths, weights: Mapping[int, int], nodes: int, attempts: Iterable[Attempt]
) -> tuple[list[PathBatch], int]:
    """The forest of the first attempt whose trees can be packed, and its trees for each unit of weight.

    Raises TopologyError where unbalanced switches lose the trees of all of them.
    """
    for trees, scale in attempts:
        roots = {node: trees * weight for node, weight in weights.items()}
        try:
            return pack_forest(whole_capacities(bandwidths, scale), roots, nodes), trees
        except CapacityLost:
            continue
    raise TopologyError("its switches lose what whole trees need at every scale; leave the number of trees open")


def _shallow(
    bandwidths: Bandwidths, ranks: int, nodes: int, attempts: Iterable[Attempt]
) -> tuple[list[PathBatch], int] | None:
    try:
        network = ShallowTrees(bandwidths, ranks, nodes, translations_of(bandwidths, ranks, nodes))
    except TooManyRoutes:
        return None
    for trees, scale in attempts:
        batches = network.grow(whole_capacities(bandwidths, scale), trees)
        if batches is not None:
            return batches, trees
    return None
