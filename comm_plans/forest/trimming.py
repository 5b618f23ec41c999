"""Networks with a switch that sends more than it receives: the best forest that such a switch can feed.

There the cut bound promises what plain forwarding cannot deliver (a switch has no bytes but those it received), and
trees must be content with less of the switch's links. How much of each link they need is the division of one family
with given roots; its rate is the best for plain forwarding, and proved optimal only where it meets the cut bound.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

from comm_plans.errors import TopologyError
from comm_plans.forest.division import divide
from comm_plans.forest.families import plain_or_all
from comm_plans.forest.optimum import find_optimum
from comm_plans.forest.outcome import Outcome, reversed_trees
from comm_plans.forest.parts import part_trees
from comm_plans.topology import Topology


def trimmed_forest(topology: Topology, operation: str, weights: Sequence[int]) -> Outcome:
    """Trees of one `operation` ("broadcast" or "reduce"), weights[rank] of equal size for each root.

    The outcome's `optimum` is the cut bound, which the trees may miss. Raises TopologyError where the network is too
    large for the linear program.
    """
    nodes = len(topology.nodes)
    padded = [*weights, *(0 for _ in topology.switches)]
    division = divide(topology.capacities, nodes, plain_or_all(topology, (operation,)), padded)
    if division is None:
        raise TopologyError(f"{topology.name} is too large to trim; lower the links out of its unbalanced switches")
    shards = tuple(Fraction(weight, sum(weights)) for weight in weights)
    starts = dict(enumerate(accumulate(shards[:-1], initial=Fraction(0))))
    trees = part_trees(division.parts, nodes, division.rate, starts)
    bound, cut = _cut_bound(topology, operation, weights)
    tight = cut if division.rate == bound else division.near_side
    return Outcome(trees if operation == "broadcast" else reversed_trees(trees), shards, bound, tight, None)


def switch_surplus(topology: Topology) -> Mapping[int, Fraction]:
    """Bandwidth in GB/s into each switch minus what leaves it."""
    surplus = {node: Fraction(0) for node in range(len(topology.ranks), len(topology.nodes))}
    for (source, target), bandwidth in topology.capacities.items():
        if source in surplus:
            surplus[source] -= bandwidth
        if target in surplus:
            surplus[target] += bandwidth
    return surplus


def _cut_bound(topology: Topology, operation: str, weights: Sequence[int]) -> tuple[Fraction, tuple[int, ...]]:
    links = topology.capacities
    outward = links if operation == "broadcast" else {(v, u): bandwidth for (u, v), bandwidth in links.items()}
    optimum = find_optimum(outward, dict(enumerate(weights)), len(topology.nodes))
    return sum(weights) / optimum.inverse_rate, optimum.cut
