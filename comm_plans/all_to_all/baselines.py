"""How all-to-all is done without planning, as steps for the same verifier and simulator.

fan_out: every pair at once. spread_out: rank u to rank u + k in step k. rail_aligned: bytes leave on the card of their
GPU for the same card of the other server, and are handed on there. hierarchical: bytes move first to the local GPU that
has the number of their destination, then to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from comm_plans.all_to_all.bounds import Fluid
from comm_plans.all_to_all.cluster import Bytes, Cluster, Places
from comm_plans.all_to_all.schedule import Transfers
from comm_plans.all_to_all.step_times import completion_seconds


def fan_out(cluster: Cluster, traffic: Bytes) -> Iterator[Transfers]:
    """One step; with ideal sharing it takes as long as the busiest card."""
    origin, destination = _pairs(traffic)
    yield _whole(traffic, origin, destination, origin, destination)


def spread_out(cluster: Cluster, traffic: Bytes) -> Iterator[Transfers]:
    """N − 1 steps in which every rank sends to one."""
    ranks = np.arange(cluster.ranks, dtype=np.int32)
    for shift in range(1, cluster.ranks):
        target = (ranks + shift) % cluster.ranks
        moving = traffic[ranks, target] > 0
        source, target = ranks[moving], target[moving]
        yield _whole(traffic, source, target, source, target)


def rail_aligned(cluster: Cluster, traffic: Bytes) -> Iterator[Transfers]:
    """Between servers on the card of the sender, beside the local traffic; then inside the receiving server."""
    origin, destination = _pairs(traffic)
    server = cluster.server_of[destination]
    relay = np.where(cluster.server_of[origin] == server, destination, _local_rank(cluster, server, origin))
    yield from _by_way_of(traffic, origin, relay, destination)


def hierarchical(cluster: Cluster, traffic: Bytes) -> Iterator[Transfers]:
    """Inside the sending server, with the local traffic; then between servers on the card of the receiver."""
    origin, destination = _pairs(traffic)
    relay = _local_rank(cluster, cluster.server_of[origin], destination)
    yield from _by_way_of(traffic, origin, relay, destination)


BASELINES: dict[str, Callable[[Cluster, Bytes], Iterator[Transfers]]] = {
    "fan-out": fan_out,
    "spread-out": spread_out,
    "rail-aligned": rail_aligned,
    "hierarchical": hierarchical,
}


def padded_seconds(cluster: Cluster, traffic: Bytes) -> float:
    """Time of schedules for equal blocks: every pair padded to the largest one, between servers and inside them."""
    apart = cluster.server_of[:, None] != cluster.server_of[None, :]
    together = ~apart & ~np.eye(cluster.ranks, dtype=bool)
    padded = apart * traffic.max(initial=0, where=apart) + together * traffic.max(initial=0, where=together)
    return completion_seconds(cluster, fan_out(cluster, padded))


def server_spread_out_seconds(cluster: Cluster, traffic: Bytes) -> float:
    """Fluid time between servers of S − 1 steps, server i to i + k, over balanced cards."""
    quota = Fluid(cluster, cluster.tiles(traffic)).between / cluster.rails
    servers = np.arange(cluster.servers)
    shifts = (quota[servers, (servers + shift) % cluster.servers].max() for shift in range(1, cluster.servers))
    return float(sum(shifts) / cluster.nic_bytes)


def _pairs(traffic: Bytes) -> tuple[Places, Places]:
    """Ranks with bytes for another one, and that one."""
    origin, destination = np.nonzero(traffic)
    apart = origin != destination
    return origin[apart].astype(np.int32), destination[apart].astype(np.int32)


def _local_rank(cluster: Cluster, server: Places, like: Places) -> Places:
    """In each server the rank numbered as `like` is in its own; in a smaller server, counted around."""
    card = cluster.places[like] % cluster.gpus
    sizes = np.array(cluster.sizes, np.int32)
    ranks: Places = cluster.rank_at[server * cluster.gpus + card % sizes[server]]
    return ranks


def _by_way_of(traffic: Bytes, origin: Places, relay: Places, destination: Places) -> Iterator[Transfers]:
    """Two steps: to the relay, then to the destination, as far as that is another rank."""
    for source, target in ((origin, relay), (relay, destination)):
        moving = source != target
        yield _whole(traffic, source[moving], target[moving], origin[moving], destination[moving])


def _whole(traffic: Bytes, source: Places, target: Places, origin: Places, destination: Places) -> Transfers:
    size = traffic[origin, destination]
    return Transfers(source, target, origin, destination, np.zeros_like(size), size)
