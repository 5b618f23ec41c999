"""Hops between nodes, for everything that needs shortest paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from comm_plans.all_to_all.direct.flow_problem import links_of
from comm_plans.topology import Topology


def hops_between(topology: Topology, free_switches: bool = False) -> NDArray[np.float64]:
    """Links on the shortest path from each rank to each node, N × V; infinite where there is none.

    free_switches: count hops from rank to rank, whatever switches lie between.
    """
    links, ranks = links_of(topology), len(topology.ranks)
    cost = np.where(links[:, 1] < ranks, 1.0, 0.0 if free_switches else 1.0)
    graph = csr_matrix((cost, tuple(links.T)), shape=(len(topology.nodes),) * 2)
    distances: NDArray[np.float64] = dijkstra(graph, indices=np.arange(ranks))
    return distances


def on_shortest(topology: Topology) -> NDArray[np.bool_]:
    """Which links lie on a shortest path from each rank to somewhere; N × A."""
    hops, links = hops_between(topology), links_of(topology)
    before, after = hops[:, links[:, 0]], hops[:, links[:, 1]]
    nearer: NDArray[np.bool_] = np.isfinite(before) & (before + 1 == after)
    return nearer
