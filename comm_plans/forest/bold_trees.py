"""Shallow spanning trees in residual capacities, grown without asking what other trees need."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from comm_plans.forest.optimum import Arc

SLACK = 3
"""Levels that a node may be deeper than it must be, for the sake of arcs with more capacity left."""
DEEPEST = 4096

Amounts = NDArray[np.int64]


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


def bold_packing(residual: Amounts, weights: Mapping[int, int]) -> list[TreeBatch] | None:
    """Trees for all weights, one batch after the other; None where one finds too little left. Changes `residual`."""
    terminals, finished = list(weights), list[TreeBatch]()
    for root, weight in weights.items():
        while weight:
            batch = TreeBatch(root, widest(residual, root, terminals, weight))
            edges = shallow_completion(residual, batch, terminals)
            if edges is None:
                return None
            batch.parents = {node: parent for parent, node in edges}
            for arc in edges:
                residual[arc] -= batch.multiplicity
            weight -= batch.multiplicity
            finished.append(batch)
    return finished


def shallow_completion(
    residual: Amounts, batch: TreeBatch, terminals: Sequence[int], refused: Set[Arc] = frozenset()
) -> list[Arc] | None:
    """Arcs (parent, node), parents first, that complete the batch; None where its multiplicity does not get through.

    Nodes join over the arcs with most capacity left, at most `SLACK` levels lower than they could.
    """
    room = np.where(residual >= batch.multiplicity, residual, 0)
    for arc in refused:
        room[arc] = 0
    depths = np.full(len(room), -1)
    for node, depth in batch.depths().items():
        depths[node] = depth
    limits = _lowest_levels(room, depths) + SLACK
    if (limits[list(terminals)] > DEEPEST).any():
        return None
    return _widest_arcs(room, depths, limits, [node for node in terminals if depths[node] < 0])


def widest(residual: Amounts, root: int, terminals: Sequence[int], most: int) -> int:
    """A multiplicity up to `most` whose trees need not be deeper than that of a single tree; at least 1."""
    start = np.full(len(residual), -1)
    start[root] = 0
    ends, width = list(terminals), most
    deepest = _lowest_levels(residual, start)[ends].max()
    while width > 1 and _lowest_levels(np.where(residual >= width, residual, 0), start)[ends].max() > deepest:
        width = (width + 1) // 2
    return width


def _widest_arcs(room: Amounts, depths: Amounts, limits: Amounts, missing: Sequence[int]) -> list[Arc]:
    """Prim's growth by capacity left (and among equals the parent nearest the root) within the depth limits."""
    offers, parents = np.full(len(room), -1), np.zeros(len(room), np.int64)
    unreached = np.zeros(len(room), bool)
    unreached[list(missing)] = True
    edges: list[Arc] = []
    waiting = [int(node) for node in np.flatnonzero(depths >= 0)]
    while True:
        for node in waiting:
            row = room[node] * DEEPEST - depths[node]
            better = unreached & (room[node] > 0) & (depths[node] < limits) & (row > offers)
            offers[better], parents[better] = row[better], node
        if len(edges) == len(missing):
            return edges
        node = int(offers.argmax())
        parent = int(parents[node])
        edges.append((parent, node))
        depths[node] = depths[parent] + 1
        unreached[node], offers[node], waiting = False, -1, [node]


def _lowest_levels(room: Amounts, depths: Amounts) -> Amounts:
    """Least depth of each node below the tree nodes (those with depths ≥ 0); beyond DEEPEST where there is no way."""
    lowest = np.where(depths >= 0, depths, 2 * DEEPEST)
    for depth in range(len(room)):
        level = np.flatnonzero(lowest == depth)
        reached = (room[level] > 0).any(axis=0) & (lowest > depth + 1) & (depths < 0)
        lowest[reached] = depth + 1
        if not reached.any() and depth >= depths.max():
            break
    return lowest
