"""Networks whose ranks are slower than their links: what passes between a host and its network card is limited.

Both forms are ordinary networks with more nodes, so that everything else applies to them as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from comm_plans.errors import PlansError, TopologyError
from comm_plans.topology import Link, Switch, Topology

FORWARDING = ("nic", "host")


def with_host_limit(topology: Topology, bandwidth: Fraction, forwarding: str) -> Topology:
    """The network in which each rank exchanges at most `bandwidth` GB/s, each way, with its network card.

    forwarding: `nic` if cards pass on what is for others (source-routed fabrics); `host` if all of it goes through the
    memory of each rank on the way (store and forward). Source: arXiv 2309.13541, host bottleneck.
    Raises PlansError for another word, TopologyError for a bandwidth that is not above zero.
    """
    if forwarding not in FORWARDING:
        raise PlansError(f"forwarding {forwarding[:40]!r} is neither nic nor host; say which of them passes data on")
    if bandwidth <= 0:
        raise TopologyError(f"a host limit of {bandwidth} GB/s lets nothing through; give one above zero")
    return _with_cards(topology, bandwidth) if forwarding == "nic" else _with_doors(topology, bandwidth)


def _with_cards(topology: Topology, bandwidth: Fraction) -> Topology:
    """Links join cards; a rank hangs on its own."""
    links = [
        link
        for rank in topology.ranks
        for link in (Link(rank, _card(rank), bandwidth), Link(_card(rank), rank, bandwidth))
    ]
    return _rewired(topology, links, (_card,), _card, _card)


def _with_doors(topology: Topology, bandwidth: Fraction) -> Topology:
    """Links lead from the way out of one rank to the way in of another."""
    links = [
        link
        for rank in topology.ranks
        for link in (Link(_entry(rank), rank, bandwidth), Link(rank, _exit(rank), bandwidth))
    ]
    return _rewired(topology, links, (_entry, _exit), _exit, _entry)


Naming = Callable[[str], str]


def _rewired(topology: Topology, inner: list[Link], added: tuple[Naming, ...], out: Naming, into: Naming) -> Topology:
    """The network with nodes added beside each rank, its links moved to them."""
    ranks = set(topology.ranks)
    outer = [
        Link(
            out(link.source) if link.source in ranks else link.source,
            into(link.target) if link.target in ranks else link.target,
            link.bandwidth,
            link.latency,
        )
        for link in topology.links
    ]
    beside = tuple(Switch(naming(rank)) for rank in topology.ranks for naming in added)
    return Topology(topology.name, topology.ranks, topology.switches + beside, (*inner, *outer), topology.hosts)


def _card(rank: str) -> str:
    return f"{rank}.nic"


def _entry(rank: str) -> str:
    return f"{rank}.in"


def _exit(rank: str) -> str:
    return f"{rank}.out"
