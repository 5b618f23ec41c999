"""What is to be sent on a network, and whether it can be: the questions asked before anything is solved."""

from __future__ import annotations

import numpy as np

from comm_plans.all_to_all.direct.flow_problem import Indices, links_of
from comm_plans.errors import Disconnected, PlansError, listed
from comm_plans.forest.checks import check_ranks
from comm_plans.topology import Topology


def demand_of(topology: Topology, traffic: Indices | None) -> Indices:
    """Units from each rank to each other rank, N × N int64 with a zero diagonal: one a pair without `traffic`.

    Raises PlansError for traffic that is no matrix of whole numbers ≥ 0 of that size or is zero, for a network of one
    rank, and Disconnected where a pair has no path.
    """
    check_ranks(topology)
    demand = _uniform(len(topology.ranks)) if traffic is None else _checked(topology, traffic)
    _check_connected(topology, demand)
    return demand


def is_uniform(demand: Indices) -> bool:
    """Whether all pairs send the same."""
    return len(np.unique(demand[~np.eye(len(demand), dtype=bool)])) == 1


def _uniform(ranks: int) -> Indices:
    return np.ones((ranks, ranks), dtype=np.int64) - np.eye(ranks, dtype=np.int64)


def _checked(topology: Topology, traffic: Indices) -> Indices:
    given, ranks = np.asarray(traffic), len(topology.ranks)
    if given.shape != (ranks, ranks):
        raise PlansError(
            f"the traffic has the shape {given.shape} where {topology.name} needs a row and a column for each of its "
            f"{ranks} ranks"
        )
    if given.dtype.kind not in "iu" or (given < 0).any() or (given >= 2**62).any():
        raise PlansError("the traffic holds something else than whole numbers of bytes; give integers from 0 to 2⁶²")
    demand = given.astype(np.int64)
    np.fill_diagonal(demand, 0)
    if not demand.any():
        raise PlansError("the traffic is zero between all ranks; give at least one pair something to send")
    return demand


def _check_connected(topology: Topology, demand: Indices) -> None:
    reach = np.eye(len(topology.nodes), dtype=bool)
    links = links_of(topology)
    reached = -1
    while reached != reach.sum():
        reached = int(reach.sum())
        np.logical_or.at(reach, links[:, 0], reach[links[:, 1]])
    ranks = len(demand)
    lost = np.argwhere((demand > 0) & ~reach[:ranks, :ranks])
    if len(lost):
        names = listed(topology.ranks[target] for sender, target in lost if sender == lost[0][0])
        raise Disconnected(
            f"{topology.ranks[lost[0][0]]} cannot reach {names} over the links of {topology.name}; "
            "add the missing links, in both directions"
        )
