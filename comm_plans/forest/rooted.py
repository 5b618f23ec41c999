"""broadcast and reduce: the whole buffer from or to one rank, over trees that all share this root (ForestColl §5.6).

The best rate is the smallest max-flow from the root to any other rank (Edmonds); trees are packed like those of an
all_gather in which one rank holds everything.
"""

from collections.abc import Mapping
from fractions import Fraction

from comm_plans.forest.optimum import Arc
from comm_plans.forest.outcome import Outcome
from comm_plans.forest.weighted import weighted_all_gather, weighted_reduce_scatter


def broadcast(
    bandwidths: Mapping[Arc, Fraction],
    ranks: int,
    nodes: int,
    root: int,
    trees: int | None = None,
    tolerance: Fraction = Fraction(0),
) -> Outcome:
    """Trees from `root` to all other ranks; exactly `trees` where that is given."""
    return weighted_all_gather(bandwidths, root_weights(ranks, root), nodes, trees, tolerance)


def reduce(
    bandwidths: Mapping[Arc, Fraction],
    ranks: int,
    nodes: int,
    root: int,
    trees: int | None = None,
    tolerance: Fraction = Fraction(0),
) -> Outcome:
    """Trees from all other ranks to `root` that add up on their way; exactly `trees` where that is given."""
    return weighted_reduce_scatter(bandwidths, root_weights(ranks, root), nodes, trees, tolerance)


def root_weights(ranks: int, root: int) -> tuple[int, ...]:
    """All weight on the root."""
    return tuple(int(rank == root) for rank in range(ranks))
