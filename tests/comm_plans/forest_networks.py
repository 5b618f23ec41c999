"""Networks for the tests of forests, and slow exact answers that share no code with the solver."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from comm_plans.topology import Link, Switch, Topology

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "forestcoll.json").read_text())
SMALL = [name for name, entry in REFERENCE["topologies"].items() if entry["N"] <= 16]


def reference(name: str, able: bool = False) -> Topology:
    """A network of the reference file; its switches multicast and reduce if they are `able`."""
    entry = REFERENCE["topologies"][name]
    switches = tuple(Switch(switch, able, able) for switch in entry["switch"])
    links = tuple(Link(source, target, Fraction(bandwidth)) for source, target, bandwidth in entry["edges"])
    return Topology(name, tuple(entry["compute"]), switches, links)


def network(
    ranks: int, switches: int, bandwidths: dict[tuple[int, int], int], able: bool = False, name: str = "network"
) -> Topology:
    """A network by node indices: ranks first, then switches."""
    nodes = [*(f"g{rank}" for rank in range(ranks)), *(f"s{switch}" for switch in range(switches))]
    links = tuple(Link(nodes[u], nodes[v], Fraction(bandwidth)) for (u, v), bandwidth in bandwidths.items())
    return Topology(name, tuple(nodes[:ranks]), tuple(Switch(node, able, able) for node in nodes[ranks:]), links)


def star(uplinks: Sequence[int], downlinks: Sequence[int], able: bool = False) -> Topology:
    """Ranks around one switch."""
    centre = len(uplinks)
    up = {(rank, centre): bandwidth for rank, bandwidth in enumerate(uplinks)}
    down = {(centre, rank): bandwidth for rank, bandwidth in enumerate(downlinks)}
    return network(centre, 1, up | down, able, "star")


@st.composite
def networks(
    draw: st.DrawFn, most_ranks: int = 5, most_switches: int = 2, mirrored: bool = False, able: bool = False
) -> Topology:
    """Connected networks: a ring of ranks, chords, and ways over switches, which therefore are balanced."""
    ranks, switches = draw(st.integers(2, most_ranks)), draw(st.integers(0, most_switches))
    rank, bandwidth = st.integers(0, ranks - 1), st.integers(1, 6)
    ways = [(one, (one + 1) % ranks) for one in range(ranks)]
    ways += draw(st.lists(st.tuples(rank, rank), max_size=4))
    if switches:
        over = st.lists(st.integers(ranks, ranks + switches - 1), min_size=1, unique=True)
        ways += draw(st.lists(st.builds(lambda u, middle, v: (u, *middle, v), rank, over, rank), max_size=6))
    links: dict[tuple[int, int], int] = {}
    for way in ways:
        amount = draw(bandwidth)
        for link in pairwise(way):
            for u, v in (link, link[::-1]) if mirrored else (link,):
                if u != v:
                    links[u, v] = links.get((u, v), 0) + amount
    return network(ranks, switches, links, able)


def node_sets(topology: Topology) -> Iterator[set[int]]:
    """Every set of nodes."""
    nodes = range(len(topology.nodes))
    return (set(chosen) for size in range(len(nodes) + 1) for chosen in combinations(nodes, size))


def leaving(topology: Topology, inside: set[int]) -> Fraction:
    """Bandwidth of the links that leave a node set."""
    links = topology.capacities.items()
    return sum((bandwidth for (u, v), bandwidth in links if u in inside and v not in inside), Fraction(0))


def reversed_network(topology: Topology) -> Topology:
    """The same network with every link turned round."""
    links = tuple(Link(link.target, link.source, link.bandwidth) for link in topology.links)
    return Topology(topology.name, topology.ranks, topology.switches, links)


def cut_bound(topology: Topology, weights: Sequence[int]) -> Fraction:
    """Best rate in GB/s of all shards together by all cuts: each leaves out a rank and lets its weight through."""
    total = sum(weights)
    rates = [
        leaving(topology, inside) * total / weight
        for inside in node_sets(topology)
        if not inside >= set(range(len(weights)))
        and (weight := sum(weights[rank] for rank in inside if rank < len(weights)))
    ]
    return min(rates)
