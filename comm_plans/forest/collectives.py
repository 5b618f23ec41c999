"""Which way of building a forest answers which collective, for equal and unequal shards, trimmed or not."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from comm_plans.errors import PlansError, UnbalancedSwitch
from comm_plans.forest.all_gather import all_gather, reduce_scatter
from comm_plans.forest.all_reduce import all_reduce
from comm_plans.forest.checks import SPREADS, check_balanced
from comm_plans.forest.multicast import use_able_switches
from comm_plans.forest.outcome import Outcome
from comm_plans.forest.trimming import trimmed_forest
from comm_plans.forest.weighted import root_weights, weighted_all_gather, weighted_reduce_scatter, weights_of
from comm_plans.topology import Topology


def forest(
    topology: Topology,
    collective: str,
    trees_per_rank: int | None = None,
    tolerance: Fraction = Fraction(0),
    *,
    root: int | None = None,
    shards: Sequence[Fraction] | None = None,
    trim: bool = False,
    symmetric: bool = True,
) -> Outcome:
    """The trees of a collective on a connected network of two ranks or more, switches used for what they can.

    Raises UnbalancedSwitch where a switch sends more than it receives, unless `trim` allows to use less of its links.
    """
    if _is_balanced(topology, collective, trim):
        outcome = _untrimmed(topology, collective, trees_per_rank, tolerance, root, shards, symmetric)
    elif trees_per_rank is not None:
        raise PlansError("a trimmed forest cannot be held to a number of trees; leave the trees per rank open")
    elif collective == "all_reduce":
        outcome = all_reduce(topology)
    else:
        weights = _weights(topology, root, shards) or (1,) * len(topology.ranks)
        outcome = trimmed_forest(topology, "broadcast" if collective in SPREADS else "reduce", weights)
    return replace(outcome, trees=use_able_switches(topology, outcome.trees))


def _is_balanced(topology: Topology, collective: str, trim: bool) -> bool:
    try:
        check_balanced(topology, collective)
    except UnbalancedSwitch:
        if not trim:
            raise
        return False
    return True


def _untrimmed(
    topology: Topology,
    collective: str,
    trees: int | None,
    tolerance: Fraction,
    root: int | None,
    shards: Sequence[Fraction] | None,
    symmetric: bool,
) -> Outcome:
    if collective == "all_reduce":
        return all_reduce(topology, trees, tolerance, symmetric)
    links, ranks, nodes = topology.capacities, len(topology.ranks), len(topology.nodes)
    weights = _weights(topology, root, shards)
    if weights is None:
        equal = all_gather if collective == "all_gather" else reduce_scatter
        return equal(links, ranks, nodes, trees, tolerance, symmetric)
    weighted = weighted_all_gather if collective in SPREADS else weighted_reduce_scatter
    return weighted(links, weights, nodes, trees, tolerance)


def _weights(topology: Topology, root: int | None, shards: Sequence[Fraction] | None) -> tuple[int, ...] | None:
    """What the roots hold, or None where all hold the same."""
    if root is not None:
        return root_weights(len(topology.ranks), root)
    return None if shards is None else weights_of(shards)
