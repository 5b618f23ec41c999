"""Trees for any network: switches removed, trees packed between terminals, logical arcs led back to links.

Interface for every collective that is a packing of rooted trees:

    pack_forest(capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> list[PathBatch]

`capacities` are whole numbers of trees per link (zero arcs allowed), `weights` says for each terminal how many trees
are rooted there (0 for one that only receives; a single non-zero weight is a broadcast). All other nodes of
`range(nodes)` are switches. Each returned `PathBatch` is `multiplicity` equal trees of one physical path per edge.
"""

from collections.abc import Mapping

from comm_plans.forest.optimum import Arc, flow_network
from comm_plans.forest.paths import PathBatch, physical_batches
from comm_plans.forest.switch_removal import remove_switches
from comm_plans.forest.tree_packing import pack_trees


class CapacityLost(Exception):  # noqa: N818 - what happened, not a fault
    """A switch that sends more than it receives took capacity with it: these whole capacities carry no such trees."""


def carries(capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> bool:
    """Whether every terminal can receive all weights at once: the condition for the trees to exist."""
    network = flow_network(capacities, weights, nodes)
    return network.least_excess([nodes], list(weights), sum(weights.values()), 0) >= 0


def pack_forest(capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> list[PathBatch]:
    """Trees that span the terminals within the capacities, `weights[root]` of them from each root.

    Raises CapacityLost where no such trees exist, or where unbalanced switches lose them.
    """
    splits = remove_switches(capacities, weights, nodes)
    if not carries(splits.capacities, weights, nodes):
        raise CapacityLost
    return physical_batches(pack_trees(splits.capacities, weights, nodes), splits)
