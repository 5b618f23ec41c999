"""Trees of a division: each family packed into its part of the links, laid side by side in the buffer."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import gcd, lcm

from comm_plans.forest.division import Part
from comm_plans.forest.general import pack_forest
from comm_plans.forest.outcome import broadcast_trees
from comm_plans.plan import Tree


def part_trees(parts: Iterable[Part], nodes: int, rate: Fraction, starts: Mapping[int, Fraction]) -> tuple[Tree, ...]:
    """Broadcast trees of all parts; each root's trees lie one after the other from `starts[root]` on.

    `rate` in GB/s is that of the whole buffer: a root's trees carry its rate divided by it. The trees follow the
    arcs of their family, so those of a reduce family are still to be reversed.
    """
    position = dict(starts)
    trees: tuple[Tree, ...] = ()
    for part in parts:
        scale = _whole(part)
        capacities = {arc: int(scale * bandwidth) for arc, bandwidth in part.capacities.items()}
        weights = {node: int(scale * part.roots.get(node, 0)) for node in part.family.terminals}
        places = [position.get(node, Fraction(0)) for node in range(nodes)]
        trees += broadcast_trees(pack_forest(capacities, weights, nodes), 1 / (scale * rate), places)
        position = {root: place + part.roots.get(root, 0) / rate for root, place in position.items()}
    return trees


def _whole(part: Part) -> Fraction:
    """The least factor that makes every amount of the part whole."""
    amounts = [*part.roots.values(), *part.capacities.values()]
    return Fraction(lcm(*(amount.denominator for amount in amounts)), gcd(*(amount.numerator for amount in amounts)))
