"""The best forest of exactly k trees per rank (ForestColl, fixed k).

A tree crosses a link a whole number of times, so with k trees per unit of weight and inverse rate U / k a link of
bandwidth b carries floor(U·b) trees. The least U that works is of the form j / b: the candidates are searched exactly.
More trees are not always better: the least U / k is not monotone in k.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil, floor, gcd

from comm_plans.forest.general import carries
from comm_plans.forest.optimum import Arc

MOST_SCANNED = 16
"""Numbers of trees that are tried before the paper's k, which makes every scaled bandwidth whole."""


def whole_capacities(bandwidths: Mapping[Arc, Fraction], scale: Fraction) -> dict[Arc, int]:
    """Trees that each link carries at `scale` (seconds per GB times trees): floor(scale · bandwidth), zeros dropped."""
    capacities = {arc: floor(scale * bandwidth) for arc, bandwidth in bandwidths.items()}
    return {arc: capacity for arc, capacity in capacities.items() if capacity}


def sufficient_trees(bandwidths: Mapping[Arc, Fraction], inverse_rate: Fraction) -> int:
    """The paper's k: the fewest trees for which inverse_rate · k · bandwidth is whole on every link."""
    exact = [inverse_rate * bandwidth for bandwidth in bandwidths.values()]
    trees = 1
    for value in exact:
        trees = trees * value.denominator // gcd(trees, value.denominator)
    return trees


def optimal_tree_counts(
    bandwidths: Mapping[Arc, Fraction], weights: Mapping[int, int], nodes: int, inverse_rate: Fraction
) -> Iterator[int]:
    """Numbers of trees, smallest first, that reach the optimum although links carry whole trees only."""
    sufficient = sufficient_trees(bandwidths, inverse_rate)
    for trees in range(1, min(sufficient, MOST_SCANNED + 1)):
        if _feasible(bandwidths, weights, nodes, trees, inverse_rate * trees):
            yield trees
    yield sufficient


def least_scales(
    bandwidths: Mapping[Arc, Fraction], weights: Mapping[int, int], nodes: int, trees: int, inverse_rate: Fraction
) -> Iterator[Fraction]:
    """Scales U at which `trees` per unit of weight fit, the least one first; `inverse_rate` is the optimum's."""
    lowest = inverse_rate * trees
    candidates = _candidates(set(bandwidths.values()), lowest, lowest + 1 / min(bandwidths.values()))
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if _feasible(bandwidths, weights, nodes, trees, candidates[middle]):
            high = middle
        else:
            low = middle + 1
    yield from candidates[low:]


def _candidates(distinct: set[Fraction], lowest: Fraction, highest: Fraction) -> list[Fraction]:
    """All j / b from `lowest` to `highest`: where some link begins to carry one tree more."""
    steps = {j / b for b in distinct for j in range(ceil(lowest * b), floor(highest * b) + 1)}
    return sorted(steps | {highest})


def _feasible(
    bandwidths: Mapping[Arc, Fraction], weights: Mapping[int, int], nodes: int, trees: int, scale: Fraction
) -> bool:
    roots = {node: weight * trees for node, weight in weights.items()}
    return carries(whole_capacities(bandwidths, scale), roots, nodes)
