"""FLASH: all-to-all on a cluster of servers, so that the cards of the busiest server never wait.

Source: arXiv 2505.09764. `published` is the schedule of the paper and its public code: balance inside the servers, then
stages between them, each redistributed while the next is under way. `pipelined` cuts balance, stages and redistribution
into chunks that run side by side, in fewer stages, with the traffic inside servers in the gaps.
"""

from __future__ import annotations

from comm_plans.all_to_all.balance import Balanced, balanced
from comm_plans.all_to_all.birkhoff import published_birkhoff
from comm_plans.all_to_all.bounds import Fluid
from comm_plans.all_to_all.byte_map import Pieces, mapped
from comm_plans.all_to_all.cluster import Bytes, Cluster
from comm_plans.all_to_all.local_traffic import Local, at_once, in_gaps
from comm_plans.all_to_all.schedule import Schedule
from comm_plans.all_to_all.slots import Pace, Slots, best_slots, in_order


def published(cluster: Cluster, traffic: Bytes) -> Schedule:
    """The published schedule: local traffic, balance, stages in the order found. traffic: bytes from rank to rank."""
    fluid = Fluid(cluster, cluster.tiles(traffic))
    slots = in_order(published_birkhoff(fluid.quota))
    pieces = _pieces(fluid, slots, spread=False)
    local = at_once(fluid.tiles, len(slots.weights) + 3, step=0)
    return Schedule(cluster, slots, pieces, local, lead=2, ahead=False)


def pipelined(cluster: Cluster, traffic: Bytes, chunks: int | None = None) -> Schedule:
    """The fastest schedule. traffic: bytes from rank to rank; chunks: of the heaviest stage, chosen unless given."""
    fluid = Fluid(cluster, cluster.tiles(traffic))
    slots = best_slots(fluid.quota, _pace(fluid), chunks)
    pieces = _pieces(fluid, slots, spread=True)
    mesh = cluster.intra_fabric == "mesh"
    rates = cluster.nic_bytes, cluster.nic_latency, cluster.intra_bytes
    local = Local(*in_gaps(fluid.tiles, *pieces, slots.partners, *rates, mesh))
    return Schedule(cluster, slots, pieces, local, lead=1, ahead=True)


def _pieces(fluid: Fluid, slots: Slots, spread: bool) -> Pieces:
    queues = Balanced(*balanced(fluid.tiles, fluid.quota, fluid.cluster.rails, spread))
    return Pieces(*mapped(*queues, slots.partners, slots.weights))


def _pace(fluid: Fluid) -> Pace:
    """A slot costs a latency of the cards, or those of a GPU that talks to all others of its server."""
    cluster = fluid.cluster
    inside = cluster.intra_latency * (1 if cluster.intra_fabric == "mesh" else cluster.gpus - 1)
    balance, redistribution = fluid.skew
    growth = 1 / min(max(cluster.skew_cost, 0.5), 0.9)
    return Pace(cluster.nic_bytes, max(cluster.nic_latency, inside), balance, redistribution, growth)
