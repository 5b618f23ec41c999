"""Shallow spanning trees in residual capacities, grown without asking what other trees need."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from comm_plans.forest.growth import UNREACHABLE, Amounts, lowest_levels, widest_arcs
from comm_plans.forest.optimum import Arc

SLACK = 3
"""Levels that a node may be deeper than it must be, for the sake of arcs with more capacity left."""
BOLD_SLACKS = (0, 1)
"""The same where trees are packed without asking whether others still fit."""


@dataclass
class TreeBatch:
    """`multiplicity` equal trees that grow from `root`; `parents` maps each node to its parent in order of joining.

    `stand_in` is the node that keeps its capacities while it waits, if it is not a bare root.
    """

    root: int
    multiplicity: int
    parents: dict[int, int] = field(default_factory=dict)
    stand_in: int | None = None

    def reaches(self, node: int) -> bool:
        """Whether the trees contain the node already."""
        return node == self.root or node in self.parents

    def depths(self) -> dict[int, int]:
        """Hops from the root to each node, in order of joining."""
        depths = {self.root: 0}
        for node, parent in self.parents.items():
            depths[node] = depths[parent] + 1
        return depths


def bold_packing(capacities: Amounts, weights: Mapping[int, int]) -> list[TreeBatch] | None:
    """Trees for all weights (node → number of trees rooted there), one batch after the other; None where they run out.

    `capacities` is a matrix over node indices.
    """
    for slack in BOLD_SLACKS:
        batches = _packed_with(slack, capacities.copy(), weights)
        if batches is not None:
            return batches
    return None


def _packed_with(slack: int, residual: Amounts, weights: Mapping[int, int]) -> list[TreeBatch] | None:
    terminals, finished = list(weights), list[TreeBatch]()
    for root, weight in weights.items():
        while weight:
            batch = TreeBatch(root, widest(residual, root, terminals, weight))
            edges = shallow_completion(residual, batch, terminals, slack=slack)
            if edges is None:
                return None
            batch.parents = {node: parent for parent, node in edges}
            for arc in edges:
                residual[arc] -= batch.multiplicity
            weight -= batch.multiplicity
            finished.append(batch)
    return finished


def shallow_completion(
    residual: Amounts,
    batch: TreeBatch,
    terminals: Sequence[int],
    refused: Set[Arc] = frozenset(),
    slack: int = SLACK,
) -> list[Arc] | None:
    """Arcs (parent, node), parents first, that complete the batch; None where its multiplicity does not get through.

    Nodes join over the arcs with most capacity left, at most `slack` levels lower than they could.
    """
    room = residual.copy() if refused else residual
    for arc in refused:
        room[arc] = 0
    depths = np.full(len(room), -1)
    for node, depth in batch.depths().items():
        depths[node] = depth
    lowest = lowest_levels(room, batch.multiplicity, depths)
    if lowest[list(terminals)].max() >= UNREACHABLE:
        return None
    missing = len(terminals) - 1 - len(batch.parents)
    arcs = widest_arcs(room, batch.multiplicity, depths, lowest + slack, missing)
    return [(parent, node) for parent, node in arcs.tolist()]


def widest(residual: Amounts, root: int, terminals: Sequence[int], most: int) -> int:
    """A multiplicity up to `most` whose trees need not be deeper than that of a single tree; at least 1."""
    start = np.full(len(residual), -1)
    start[root] = 0
    ends, width = list(terminals), most
    deepest = lowest_levels(residual, 1, start)[ends].max()
    while width > 1 and lowest_levels(residual, width, start)[ends].max() > deepest:
        width = (width + 1) // 2
    return width
