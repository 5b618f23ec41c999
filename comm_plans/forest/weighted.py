"""Forests whose roots hold unequal parts of the buffer, and forests of one root.

A rank of weight ω roots ω times as many trees as one of weight 1; weight 0 only receives. broadcast and reduce are the
case of one weight: the whole buffer from or to one rank, at the smallest max-flow from the root to any rank (Edmonds).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import gcd, lcm

from comm_plans.errors import PlansError
from comm_plans.forest.all_gather import attempts, packed
from comm_plans.forest.optimum import Arc, find_optimum
from comm_plans.forest.outcome import Outcome, broadcast_trees, played_backwards


def weights_of(shards: Sequence[Fraction]) -> tuple[int, ...]:
    """Coprime whole weights in proportion to the shards. Raises PlansError for impossible shards."""
    if min(shards) < 0 or max(shards) <= 0:
        raise PlansError(
            f"shards of {', '.join(map(str, shards))} cannot be: none may be negative, one must be positive"
        )
    common = lcm(*(shard.denominator for shard in shards))
    whole = [int(shard * common) for shard in shards]
    return tuple(weight // gcd(*whole) for weight in whole)


def weighted_all_gather(
    bandwidths: Mapping[Arc, Fraction],
    weights: Sequence[int],
    nodes: int,
    trees_per_weight: int | None = None,
    tolerance: Fraction = Fraction(0),
) -> Outcome:
    """Trees from every rank of positive weight to all others; `bandwidths` in GB/s by node indices, ranks first.

    Exactly `trees_per_weight` trees for each unit of weight where that is given; else as few as the optimum needs, or
    as few as come within the relative `tolerance` of it. Raises TopologyError where that many cannot be packed.
    """
    terminals, total = dict(enumerate(weights)), sum(weights)
    optimum = find_optimum(bandwidths, terminals, nodes)
    shards = tuple(Fraction(weight, total) for weight in weights)
    tries = attempts(bandwidths, terminals, nodes, optimum.inverse_rate, trees_per_weight, tolerance)
    batches, trees = packed(bandwidths, terminals, nodes, tries)
    starts = list(accumulate(shards[:-1], initial=Fraction(0)))
    placed = broadcast_trees(batches, Fraction(1, trees * total), starts)
    return Outcome(placed, shards, total / optimum.inverse_rate, optimum.cut, trees)


def weighted_reduce_scatter(
    bandwidths: Mapping[Arc, Fraction],
    weights: Sequence[int],
    nodes: int,
    trees_per_weight: int | None = None,
    tolerance: Fraction = Fraction(0),
) -> Outcome:
    """The weighted all_gather of the reversed network, played backwards."""
    return played_backwards(
        lambda links: weighted_all_gather(links, weights, nodes, trees_per_weight, tolerance), bandwidths, nodes
    )


def root_weights(ranks: int, root: int) -> tuple[int, ...]:
    """All weight on the root: the weights of a broadcast or a reduce."""
    return tuple(int(rank == root) for rank in range(ranks))
