"""Replays routes on the network they are for, knowing nothing of how they were found.

Every path must lead over existing links from its pair's sender to its receiver without coming back to a node; the parts
of each pair must make up the whole. What comes out is how long the busiest link needs for what it then carries.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from comm_plans.all_to_all.direct.flow_problem import Indices, links_of
from comm_plans.all_to_all.direct.routes import Routes, loads, slowest
from comm_plans.errors import PlanError
from comm_plans.topology import Topology


def replayed(topology: Topology, demand: Indices, blocks: Iterable[Routes]) -> Fraction:
    """Units by GB/s that the busiest link needs when the routes of all blocks deliver `demand` (N × N units); exact.

    Raises PlanError where they do not deliver it. Blocks share one denominator.
    """
    links = links_of(topology)
    parts, load, denominator = np.zeros_like(demand), np.zeros(len(links), dtype=object), 1
    for routes in blocks:
        _check_paths(topology, links, routes)
        np.add.at(parts, (routes.pair[:, 0], routes.pair[:, 1]), routes.share)
        load += loads(routes, demand, len(links))
        denominator = routes.denominator
    wrong = np.argwhere(parts != np.where(demand > 0, denominator, 0))
    if len(wrong):
        sender, receiver = (topology.nodes[node] for node in wrong[0])
        raise PlanError(f"the routes from {sender} to {receiver} do not carry exactly what is to be sent")
    return slowest(load, tuple(topology.capacities.values())) / denominator


def _check_paths(topology: Topology, links: Indices, routes: Routes) -> None:
    _need((routes.hops > 0).all() and (routes.share > 0).all(), "a path is empty or carries nothing")
    tails, heads = links[routes.arc].T
    first, last = routes.begin[:-1], routes.begin[1:] - 1
    _need(np.array_equal(tails[first], routes.pair[:, 0]), "a path does not begin at its sender")
    _need(np.array_equal(heads[last], routes.pair[:, 1]), "a path does not end at its receiver")
    inner = np.ones(len(tails), dtype=bool)
    inner[first] = False
    _need(np.array_equal(tails[inner], heads[np.flatnonzero(inner) - 1]), "a path jumps from one node to another")
    _need(not _comes_back(routes, heads, len(topology.nodes)), "a path comes back to a node")


def _comes_back(routes: Routes, heads: Indices, nodes: int) -> bool:
    """Whether a path meets a node twice; its sender counts."""
    owner = np.arange(len(routes)) * nodes
    met = np.concatenate([np.repeat(owner, routes.hops) + heads, owner + routes.pair[:, 0]])
    seen = np.zeros(len(routes) * nodes, dtype=bool)
    seen[met] = True
    return int(seen.sum()) < len(met)


def _need(holds: bool | np.bool_, otherwise: str) -> None:
    if not holds:
        raise PlanError(f"{otherwise}, so the routes are no plan")
