"""Spanning out-trees packed into integer capacities, many equal trees at a time (Edmonds; arXiv 2402.06787).

A batch is a set of equal partial trees. Batches can be completed as long as every set of nodes can still be left often
enough by the batches inside it, which one sweep of max-flows tells (Schrijver, Combinatorial Optimization, ch. 53). A
whole shallow tree is tried at once; only where it does not fit is the longest part of it taken that does, and a
single arc judged: x→y may join µ trees of a batch, µ being one max-flow (Tarjan; Bérczi & Frank). In networks with
room to spare no tree is in another's way, so that is tried before anything else.
"""

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from comm_plans.forest.bold_trees import TreeBatch, bold_packing, shallow_completion, widest
from comm_plans.forest.optimum import Arc
from comm_plans.max_flow import UNBOUNDED, Network

MOST_REFUSED = 4
"""Arcs that may be refused to a batch before its arcs are judged one by one: by then whole trees rarely fit."""


class _Packer:
    """Residual capacities, and the demand that unfinished batches still put on them."""

    def __init__(self, capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> None:
        self.terminals = list(weights)
        self.source, self.current = nodes, nodes + 1
        self.network = Network(nodes + 2)
        self.residual = np.zeros((nodes, nodes), np.int64)
        for (u, v), capacity in sorted(capacities.items()):
            self.network.set_capacity(u, v, capacity)
            self.residual[u, v] = capacity
        self.waiting = deque(TreeBatch(root, weight) for root, weight in weights.items() if weight)
        for batch in self.waiting:
            self.network.set_capacity(self.source, batch.root, batch.multiplicity)
        self.demand = sum(weights.values())

    def pack(self) -> list[TreeBatch]:
        finished = []
        while self.waiting:
            batch = self.waiting.popleft()
            self._take(batch)
            self._grow(batch)
            finished.append(batch)
        return finished

    def _grow(self, batch: TreeBatch) -> None:
        """Complete the batch; what cannot share its trees waits as a batch of its own."""
        if not batch.parents:
            self._split(batch, widest(self.residual, batch.root, self.terminals, batch.multiplicity))
        refused: set[Arc] = set()
        while len(batch.parents) + 1 < len(self.terminals):
            edges = shallow_completion(self.residual, batch, self.terminals, refused)
            if edges is None or len(refused) > MOST_REFUSED:
                return self._grow_arc_by_arc(batch)
            fitting = self._longest_fit(batch, edges)
            for parent, node in edges[:fitting]:
                self._join(batch, parent, node)
            if fitting < len(edges) and not self._extend(batch, *edges[fitting]):
                refused.add(edges[fitting])

    def _grow_arc_by_arc(self, batch: TreeBatch) -> None:
        """Complete the batch breadth-first; an arc that is refused once is of no use to the batch later."""
        frontier = deque([batch.root, *batch.parents])
        while frontier and len(batch.parents) + 1 < len(self.terminals):
            node = frontier.popleft()
            for reached in np.flatnonzero(self.residual[node]):
                if not batch.reaches(int(reached)) and self._extend(batch, node, int(reached)):
                    frontier.append(int(reached))
        assert len(batch.parents) + 1 == len(self.terminals), "the capacities do not carry the weights"

    def _longest_fit(self, batch: TreeBatch, edges: Sequence[Arc]) -> int:
        """How many of the edges, in order, can join without taking what other batches need."""
        if self._fits(batch, edges):
            return len(edges)
        fitting, step = 0, 1
        while fitting + step < len(edges) and self._fits(batch, edges[: fitting + step]):
            fitting, step = fitting + step, 2 * step
        beyond = min(fitting + step, len(edges))
        while beyond - fitting > 1:
            middle = (fitting + beyond) // 2
            fitting, beyond = (middle, beyond) if self._fits(batch, edges[:middle]) else (fitting, middle)
        return fitting

    def _fits(self, batch: TreeBatch, edges: Sequence[Arc]) -> bool:
        """Whether all batches can still be completed once these edges have joined this one."""
        reached = [batch.root, *batch.parents, *(node for _, node in edges)]
        unfinished = batch.multiplicity if len(reached) < len(self.terminals) else 0
        self._offer(self.current, unfinished, reached)
        for parent, node in edges:
            self.network.add_capacity(parent, node, -batch.multiplicity)
        fits = self.network.least_excess([self.source], self.terminals, self.demand + unfinished, 0) >= 0
        for parent, node in edges:
            self.network.add_capacity(parent, node, batch.multiplicity)
        self.network.isolate(self.current)
        return fits

    def _extend(self, batch: TreeBatch, parent: int, node: int) -> bool:
        """Let the arc join as many trees of the batch as it can, and the others wait."""
        most = min(int(self.residual[parent, node]), batch.multiplicity)
        if most:
            most = self.network.least_excess([self.source, parent], [node], self.demand, most)
        if most <= 0:
            return False
        self._split(batch, most)
        self._join(batch, parent, node)
        return True

    def _join(self, batch: TreeBatch, parent: int, node: int) -> None:
        self.network.add_capacity(parent, node, -batch.multiplicity)
        self.residual[parent, node] -= batch.multiplicity
        batch.parents[node] = parent

    def _take(self, batch: TreeBatch) -> None:
        self.demand -= batch.multiplicity
        if batch.stand_in is None:
            self.network.add_capacity(self.source, batch.root, -batch.multiplicity)
        else:
            self.network.isolate(batch.stand_in)

    def _split(self, batch: TreeBatch, multiplicity: int) -> None:
        """Keep `multiplicity` trees in the batch; the rest wait, a node of the network standing in for their demand."""
        rest = TreeBatch(batch.root, batch.multiplicity - multiplicity, dict(batch.parents))
        batch.multiplicity = multiplicity
        if not rest.multiplicity:
            return
        self.demand += rest.multiplicity
        self.waiting.append(rest)
        if rest.parents:
            rest.stand_in = self.network.add_node()
            self._offer(rest.stand_in, rest.multiplicity, [rest.root, *rest.parents])
        else:
            self.network.add_capacity(self.source, rest.root, rest.multiplicity)

    def _offer(self, stand_in: int, demand: int, reached: Sequence[int]) -> None:
        self.network.set_capacity(self.source, stand_in, demand)
        for node in reached:
            self.network.set_capacity(stand_in, node, UNBOUNDED)


def pack_trees(capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> list[TreeBatch]:
    """Batches of trees that span all of `weights` (node → number of trees rooted there) within the capacities.

    The capacities must carry the weights (max-flow from the weights to every node ≥ their sum), which
    `remove_switches` guarantees.
    """
    room = np.zeros((nodes, nodes), np.int64)
    for arc, capacity in capacities.items():
        room[arc] = capacity
    return bold_packing(room, weights) or _Packer(capacities, weights, nodes).pack()
