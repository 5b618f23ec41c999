"""Compiled growth of one tree in a matrix of residual capacities: how low each node must be, which arc is widest."""

import numpy as np
from numpy.typing import NDArray

from comm_plans.compiled import compiled

UNREACHABLE = 8192
"""Level of a node to which no way leads."""

Amounts = NDArray[np.int64]


@compiled
def lowest_levels(room: Amounts, least: int, depths: Amounts) -> Amounts:
    """Least depth of each node below the tree nodes (those with depths ≥ 0) over arcs with at least `least` left."""
    nodes = len(depths)
    lowest = np.where(depths >= 0, depths, UNREACHABLE)
    for depth in range(nodes):
        for node in range(nodes):
            if lowest[node] == depth:
                for reached in range(nodes):
                    if lowest[reached] > depth + 1 and depths[reached] < 0 and room[node, reached] >= least:
                        lowest[reached] = depth + 1
    return lowest


@compiled
def widest_arcs(room: Amounts, least: int, depths: Amounts, limits: Amounts, missing: int) -> Amounts:
    """Parents and nodes (two columns, in order of joining) of the `missing` nodes that join by Prim's growth.

    A node joins over the arc with most capacity left, among equals from the parent nearest the root, no deeper than its
    limit. Every missing node must have a way to it within the limits.
    """
    nodes = len(depths)
    depths = depths.copy()
    parents = np.full(nodes, -1)
    arcs = np.empty((missing, 2), np.int64)
    for node in range(nodes):
        if depths[node] >= 0:
            _offer(room, least, depths, limits, parents, node)
    for place in range(missing):
        best = -1
        for node in range(nodes):
            if depths[node] < 0 and parents[node] >= 0 and (best < 0 or _wider(room, depths, parents, node, best)):
                best = node
        arcs[place, 0], arcs[place, 1] = parents[best], best
        depths[best] = depths[parents[best]] + 1
        _offer(room, least, depths, limits, parents, best)
    return arcs


@compiled
def _offer(room: Amounts, least: int, depths: Amounts, limits: Amounts, parents: Amounts, parent: int) -> None:
    """Make `parent` the parent of every missing node to which its arc is the widest so far."""
    for node in range(len(depths)):
        width = room[parent, node]
        if depths[node] < 0 and width >= least and depths[parent] < limits[node]:
            other = parents[node]
            if other < 0 or (width, -depths[parent]) > (room[other, node], -depths[other]):
                parents[node] = parent


@compiled
def _wider(room: Amounts, depths: Amounts, parents: Amounts, node: int, other: int) -> bool:
    first, second = parents[node], parents[other]
    return (room[first, node], -depths[first]) > (room[second, other], -depths[second])
