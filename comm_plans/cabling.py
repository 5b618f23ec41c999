"""Wiring a network node by node, for programs that make topologies."""

from __future__ import annotations

from fractions import Fraction

from comm_plans.errors import TopologyError
from comm_plans.topology import MOST_NODES, Link, Switch, Topology

MOST_LINKS = 1_100_000


class Cabling:
    """A topology in the making; ranks and switches count in the order in which they come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._ranks: list[str] = []
        self._switches: list[Switch] = []
        self._links: list[Link] = []
        self._hosts: dict[str, list[str]] = {}

    def rank(self, name: str, host: str | None = None) -> str:
        """Add a rank, inside a host if one is named, and give its name back."""
        self._ranks.append(name)
        if host is not None:
            self._hosts.setdefault(host, []).append(name)
        self._check_size()
        return name

    def switch(self, name: str) -> str:
        """Add a switch that only forwards and give its name back."""
        self._switches.append(Switch(name))
        self._check_size()
        return name

    def link(self, source: str, target: str, bandwidth: Fraction) -> None:
        """Join two nodes one way, at GB/s."""
        self._links.append(Link(source, target, bandwidth))
        self._check_size()

    def cable(self, one: str, other: str, bandwidth: Fraction) -> None:
        """Join two nodes both ways, at GB/s each way."""
        self.link(one, other, bandwidth)
        self.link(other, one, bandwidth)

    def topology(self) -> Topology:
        """Give the finished network. Raises TopologyError as `Topology` does."""
        hosts = {host: tuple(ranks) for host, ranks in self._hosts.items()}
        return Topology(self.name, tuple(self._ranks), tuple(self._switches), tuple(self._links), hosts)

    def _check_size(self) -> None:
        """Refuse before memory runs out, not after."""
        if len(self._ranks) + len(self._switches) > MOST_NODES:
            raise TopologyError(f"{self.name} has more than the {MOST_NODES} nodes that a topology may have")
        if len(self._links) > MOST_LINKS:
            raise TopologyError(f"{self.name} has more than {MOST_LINKS} links; make it smaller")
