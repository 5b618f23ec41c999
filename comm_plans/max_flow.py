"""Compiled max-flow tests on integer networks: every question a forest asks is "is this flow at least so much?".

The engine is Dinic's algorithm over arrays. Three things make it fast for that question: a flow stops at its
threshold; a terminal that has passed becomes a source, so a sweep over all terminals costs about one large flow
(a cut that violates a later terminal either separates an earlier one too, and was found there, or leaves all
earlier ones on the source side); and a terminal whose direct arcs already suffice is passed without a search.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from comm_plans.compiled import compiled
from comm_plans.errors import TooFine

Indices = NDArray[np.int32]
Amounts = NDArray[np.int64]
Roles = NDArray[np.int8]

UNBOUNDED = 2**61
"""Capacity of an arc that never limits a flow."""

_PLAIN, _SOURCE, _KEPT_SINK, _SINK = 0, 1, 2, 3


class Network:
    """A directed network on nodes 0..n-1 with integer capacities; arcs u→v and v→u share one residual pair.

    Sums of capacities must stay below 2^62 (`TooFine` otherwise).
    """

    def __init__(self, nodes: int) -> None:
        self._adjacency = np.zeros((nodes, 8), np.int32)
        self._degree = np.zeros(nodes, np.int32)
        self._target = np.zeros(64, np.int32)
        self._capacity = np.zeros(64, np.int64)
        self._level = np.zeros(nodes, np.int32)
        self._arc: dict[tuple[int, int], int] = {}

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self._degree)

    def add_node(self) -> int:
        """One more node, without arcs; returns its number."""
        self._adjacency = np.concatenate([self._adjacency, np.zeros_like(self._adjacency[:1])])
        self._degree = np.append(self._degree, np.int32(0))
        self._level = np.append(self._level, np.int32(0))
        return self.nodes - 1

    def capacity(self, source: int, target: int) -> int:
        """Capacity of the arc source→target, 0 where there is none."""
        arc = self._arc.get((source, target))
        return 0 if arc is None else int(self._capacity[arc])

    def set_capacity(self, source: int, target: int, capacity: int) -> None:
        """Give the arc source→target this capacity, creating the arc where needed."""
        if capacity >= 2**62:
            raise TooFine(f"a capacity of {capacity} does not fit the 62 bits that flows are counted in")
        arc = self._arc.get((source, target))
        arc = self._new_pair(source, target) if arc is None else arc
        self._capacity[arc] = capacity

    def add_capacity(self, source: int, target: int, amount: int) -> None:
        """Add `amount` (it may be negative) to the capacity of source→target."""
        self.set_capacity(source, target, self.capacity(source, target) + amount)

    def isolate(self, node: int) -> None:
        """Take all capacity from the arcs at a node."""
        arcs = self._adjacency[node, : self._degree[node]]
        self._capacity[arcs] = 0
        self._capacity[arcs ^ 1] = 0

    def least_excess(
        self, sources: Iterable[int], terminals: Sequence[int], need: int, margin: int, kept: Iterable[int] = ()
    ) -> int:
        """Smallest of `margin` and, over all terminals v, maxflow(sources → {v} ∪ kept) − need.

        Terminals among the sources are skipped. A negative answer, or a zero answer for a positive margin, ends the
        sweep at once; `near_side()` then tells the source side of the cut that caused it.
        """
        role = np.zeros(self.nodes, np.int8)
        role[list(sources)] = _SOURCE
        role[list(kept)] = _KEPT_SINK
        order = np.fromiter(terminals, np.int32)
        arrays = (self._adjacency, self._degree, self._target, self._capacity.copy())
        return int(_sweep(*arrays, role, self._level, order, need, margin))

    def near_side(self) -> list[int]:
        """Nodes on the source side of the last cut found by `least_excess`."""
        return [int(node) for node in np.flatnonzero(self._level >= 0)]

    def _new_pair(self, source: int, target: int) -> int:
        arc = len(self._arc)
        if arc + 2 > len(self._target):
            self._target = np.concatenate([self._target, np.zeros_like(self._target)])
            self._capacity = np.concatenate([self._capacity, np.zeros_like(self._capacity)])
        self._target[arc], self._target[arc + 1] = target, source
        self._arc[source, target], self._arc[target, source] = arc, arc + 1
        self._attach(source, arc)
        self._attach(target, arc + 1)
        return arc

    def _attach(self, node: int, arc: int) -> None:
        if self._degree[node] == self._adjacency.shape[1]:
            self._adjacency = np.concatenate([self._adjacency, np.zeros_like(self._adjacency)], axis=1)
        self._adjacency[node, self._degree[node]] = arc
        self._degree[node] += 1


@compiled
def _sweep(
    adjacency: Indices,
    degree: Indices,
    target: Indices,
    residual: Amounts,
    role: Roles,
    level: Indices,
    terminals: Indices,
    need: int,
    margin: int,
) -> int:
    nodes = len(degree)
    queue, pointer, path = np.zeros(nodes, np.int32), np.zeros(nodes, np.int32), np.zeros(nodes, np.int32)
    kept = 0
    for terminal in terminals:
        if role[terminal] == _SOURCE:
            continue
        goal = need + margin - kept
        if _direct(adjacency, degree, target, residual, role, terminal) < goal:
            role[terminal] = _SINK
            into_kept, into_terminal = _push(
                adjacency, degree, target, residual, role, level, queue, pointer, path, goal
            )
            kept += into_kept
            if into_kept + into_terminal < goal:
                margin = kept + into_terminal - need
                if margin <= 0:
                    return margin
        role[terminal] = _SOURCE
    return margin


@compiled
def _direct(adjacency: Indices, degree: Indices, target: Indices, residual: Amounts, role: Roles, terminal: int) -> int:
    """Residual capacity of the arcs that lead straight from sources into the terminal."""
    total = 0
    for slot in range(degree[terminal]):
        arc = adjacency[terminal, slot]
        if role[target[arc]] == _SOURCE:
            total += residual[arc ^ 1]
    return total


@compiled
def _push(
    adjacency: Indices,
    degree: Indices,
    target: Indices,
    residual: Amounts,
    role: Roles,
    level: Indices,
    queue: Indices,
    pointer: Indices,
    path: Indices,
    limit: int,
) -> tuple[int, int]:
    """Push up to `limit` more units from the sources; return what reached the kept sinks and the current one."""
    into_kept, into_terminal = 0, 0
    while into_kept + into_terminal < limit and _label(adjacency, degree, target, residual, role, level, queue):
        pointer[:] = 0
        for source in range(len(degree)):
            if role[source] != _SOURCE:
                continue
            node, depth = source, 0
            while True:
                if role[node] >= _KEPT_SINK:
                    amount = limit - into_kept - into_terminal
                    for step in range(depth):
                        amount = min(amount, residual[path[step]])
                    if role[node] == _SINK:
                        into_terminal += amount
                    else:
                        into_kept += amount
                    saturated = 0
                    for step in range(depth - 1, -1, -1):
                        residual[path[step]] -= amount
                        residual[path[step] ^ 1] += amount
                        if residual[path[step]] == 0:
                            saturated = step
                    if into_kept + into_terminal == limit:
                        return into_kept, into_terminal
                    depth = saturated
                    node = target[path[saturated] ^ 1]
                advanced = False
                while pointer[node] < degree[node]:
                    arc = adjacency[node, pointer[node]]
                    if residual[arc] > 0 and level[target[arc]] == level[node] + 1:
                        path[depth] = arc
                        depth += 1
                        node = target[arc]
                        advanced = True
                        break
                    pointer[node] += 1
                if not advanced:
                    if depth == 0:
                        break
                    depth -= 1
                    node = target[path[depth] ^ 1]
                    pointer[node] += 1
    return into_kept, into_terminal


@compiled
def _label(
    adjacency: Indices,
    degree: Indices,
    target: Indices,
    residual: Amounts,
    role: Roles,
    level: Indices,
    queue: Indices,
) -> bool:
    """Breadth-first levels from the sources (−1: not reached); True as soon as a sink is labelled."""
    head, tail = 0, 0
    for node in range(len(degree)):
        level[node] = -1
        if role[node] == _SOURCE:
            level[node] = 0
            queue[tail] = node
            tail += 1
    found = False
    while head < tail and not found:
        node = queue[head]
        head += 1
        for slot in range(degree[node]):
            arc = adjacency[node, slot]
            reached = target[arc]
            if residual[arc] > 0 and level[reached] < 0:
                level[reached] = level[node] + 1
                if role[reached] >= _KEPT_SINK:
                    found = True
                else:
                    queue[tail] = reached
                    tail += 1
    return found
