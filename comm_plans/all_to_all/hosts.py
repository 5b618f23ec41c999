"""A topology with hosts as a cluster of servers: how fast a rank reaches its own host, and how fast the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import chain
from math import lcm

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.errors import ClusterError
from comm_plans.max_flow import UNBOUNDED, Network
from comm_plans.topology import Topology

Capacities = Mapping[tuple[int, int], Fraction]


def cluster_of(topology: Topology) -> Cluster:
    """Servers for hosts, every rank as the slowest one.

    A rank's network card is its part of the largest flow from its host to all others, or from them to it; what else
    leaves or reaches the rank is the fabric inside. Raises ClusterError where hosts are missing, do not hold the ranks
    one after another, or are no faster inside.
    """
    hosts = [[topology.index(rank) for rank in ranks] for ranks in topology.hosts.values()]
    if list(chain(*hosts)) != list(range(len(topology.ranks))):
        raise ClusterError(f"{topology.name} has not all its ranks on hosts, in order; list them under `hosts`")
    ways = (topology.capacities, {(target, source): c for (source, target), c in topology.capacities.items()})
    links = min(_leaving(way, rank) for way in ways for rank in range(len(topology.ranks)))
    if len(hosts) == 1:
        return Cluster((len(topology.ranks),), float(links), float(links))
    card = min(_flow(way, host, topology) / len(host) for way in ways for host in hosts)
    if links <= card and len(hosts) < len(topology.ranks):
        raise ClusterError(f"{topology.name} is as fast between hosts as inside; plans for hosts cannot help it")
    return Cluster(tuple(map(len, hosts)), float(links - card or card), float(card))


def _leaving(capacities: Capacities, rank: int) -> Fraction:
    return sum((capacity for (source, _), capacity in capacities.items() if source == rank), Fraction())


def _flow(capacities: Capacities, host: Iterable[int], topology: Topology) -> Fraction:
    """GB/s of the largest flow from the ranks of a host to all other ranks."""
    inside, unit = set(host), Fraction(1, lcm(*(capacity.denominator for capacity in capacities.values())))
    end = len(topology.nodes)
    network = Network(end + 1)
    for (source, target), capacity in capacities.items():
        network.set_capacity(source, target, int(capacity / unit))
    for rank in range(len(topology.ranks)):
        if rank not in inside:
            network.set_capacity(rank, end, UNBOUNDED // len(topology.ranks))
    return network.least_excess(inside, [end], 0, UNBOUNDED) * unit
