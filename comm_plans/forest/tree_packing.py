"""Spanning out-trees packed into integer capacities, many equal trees at a time (Edmonds; ForestColl, §4.3).

A batch is a set of equal partial trees. An arc x→y may join µ of them as long as every set of nodes can still be
left often enough by the batches inside it; the largest µ is one max-flow (Tarjan; Schrijver, 53.3; Bérczi & Frank).
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from comm_plans.forest.optimum import Arc
from comm_plans.max_flow import UNBOUNDED, Network


@dataclass
class TreeBatch:
    """`multiplicity` equal trees that grow from `root`; `parents` maps each node to its parent in order of joining."""

    root: int
    multiplicity: int
    parents: dict[int, int]

    def reaches(self, node: int) -> bool:
        """Whether the trees contain the node already."""
        return node == self.root or node in self.parents


class _Packer:
    """Residual capacities, and the demand that unfinished batches still put on them."""

    def __init__(self, capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> None:
        self.source, self.spanned = nodes, len(weights)
        self.network = Network(nodes + 1)
        self.out: dict[int, list[int]] = {node: [] for node in weights}
        for (u, v), capacity in sorted(capacities.items()):
            self.network.set_capacity(u, v, capacity)
            self.out[u].append(v)
        self.waiting = deque(TreeBatch(root, weight, {}) for root, weight in weights.items() if weight)
        for batch in self.waiting:
            self.network.set_capacity(nodes, batch.root, batch.multiplicity)
        self.demand = sum(weights.values())
        self.stand_ins: dict[int, int] = {}

    def pack(self) -> list[TreeBatch]:
        finished = []
        while self.waiting:
            batch = self.waiting.popleft()
            self._take(batch)
            self._grow(batch)
            finished.append(batch)
        return finished

    def _grow(self, batch: TreeBatch) -> None:
        frontier = deque([batch.root, *batch.parents])
        while frontier and len(batch.parents) + 1 < self.spanned:
            node = frontier.popleft()
            for reached in self.out[node]:
                if not batch.reaches(reached) and self._extend(batch, node, reached):
                    frontier.append(reached)
        assert len(batch.parents) + 1 == self.spanned, "a tree stopped growing: the capacities do not carry the weights"

    def _extend(self, batch: TreeBatch, node: int, reached: int) -> bool:
        most = min(self.network.capacity(node, reached), batch.multiplicity)
        if most:
            most = self.network.least_excess([self.source, node], [reached], self.demand, most)
        if most <= 0:
            return False
        if most < batch.multiplicity:
            self._put_back(TreeBatch(batch.root, batch.multiplicity - most, dict(batch.parents)))
            batch.multiplicity = most
        self.network.add_capacity(node, reached, -most)
        batch.parents[reached] = node
        return True

    def _take(self, batch: TreeBatch) -> None:
        self.demand -= batch.multiplicity
        if batch.parents:
            self.network.isolate(self.stand_ins.pop(id(batch)))
        else:
            self.network.add_capacity(self.source, batch.root, -batch.multiplicity)

    def _put_back(self, batch: TreeBatch) -> None:
        """Let a split-off batch wait; a stand-in node offers its demand to every node its trees contain."""
        self.demand += batch.multiplicity
        self.waiting.append(batch)
        if batch.parents:
            stand_in = self.stand_ins[id(batch)] = self.network.add_node()
            self.network.set_capacity(self.source, stand_in, batch.multiplicity)
            for node in (batch.root, *batch.parents):
                self.network.set_capacity(stand_in, node, UNBOUNDED)
        else:
            self.network.add_capacity(self.source, batch.root, batch.multiplicity)


def pack_trees(capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> list[TreeBatch]:
    """Batches of trees that span all of `weights` (node → number of trees rooted there) within the capacities.

    The capacities must carry the weights (max-flow from the weights to every node ≥ their sum), which
    `remove_switches` guarantees.
    """
    return _Packer(capacities, weights, nodes).pack()
