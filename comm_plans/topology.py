"""A network as collectives see it: ranks, switches, and one-way links of exact bandwidth."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from comm_plans.errors import TopologyError, listed
from comm_plans.exact import exact, written
from comm_plans.files import write_atomically

MOST_NODES = 4096
MOST_BANDWIDTH = 10**9
MOST_LATENCY = 1000
LONGEST_NAME = 200


@dataclass(frozen=True)
class Link:
    """One direction of a connection; bandwidth in GB/s (10⁹ bytes per second), latency in seconds if known."""

    source: str
    target: str
    bandwidth: Fraction
    latency: Fraction | None = None


@dataclass(frozen=True)
class Switch:
    """A node that forwards; one that multicasts copies data on its way, one that reduces adds it up."""

    name: str
    multicast: bool = False
    reduces: bool = False


@dataclass(frozen=True)
class Topology:
    """A directed network. Parallel links are added up and links kept in node order, so that equal networks are equal.

    `hosts` says which ranks share a machine; it may name some, all or none of them.
    Raises TopologyError with a sentence that names the nodes at fault.
    """

    name: str
    ranks: tuple[str, ...]
    switches: tuple[Switch, ...] = ()
    links: tuple[Link, ...] = ()
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_name(self.name, "topology")
        check_nodes(self.nodes)
        check_hosts(self.hosts, self.ranks)
        for link in self.links:
            check_link(link, self._indices)
        object.__setattr__(self, "hosts", dict(self.hosts))
        object.__setattr__(self, "links", merged(self.links, self._indices))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes: ranks in rank order, then switches."""
        return (*self.ranks, *(switch.name for switch in self.switches))

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.nodes)}

    def index(self, name: str) -> int:
        """Place of a node in `nodes`; for a rank this is its rank. Raises TopologyError for an unknown name."""
        if name not in self._indices:
            raise TopologyError(f"{self.name} has no node {name!r}; its nodes are {listed(self.nodes)}")
        return self._indices[name]

    @cached_property
    def capacities(self) -> dict[tuple[int, int], Fraction]:
        """Bandwidth in GB/s of each link by the node indices of its ends, in node order."""
        return {(self._indices[link.source], self._indices[link.target]): link.bandwidth for link in self.links}

    @cached_property
    def key(self) -> str:
        """Canonical key: equal for networks that differ in names, numbering, hosts, latencies or measurement noise."""
        from comm_plans.canonical import canonical_key

        return canonical_key(self)

    @classmethod
    def load(cls, path: str | Path) -> Topology:
        """Read a topology file, JSON or YAML. Raises TopologyError if it is missing, too large or wrong."""
        from comm_plans.readers.topology_file import read_topology_file

        return read_topology_file(Path(path))

    @classmethod
    def loads(cls, text: str, where: str = "topology") -> Topology:
        """Read the text of a topology file; `where` names its origin in errors."""
        from comm_plans.readers.topology_file import parse_topology

        return parse_topology(text, where)

    @classmethod
    def from_document(cls, document: object, where: str = "topology") -> Topology:
        """Build from the mapping that a topology file holds."""
        from comm_plans.readers.topology_file import topology_from_document

        return topology_from_document(document, where)

    def to_document(self) -> dict[str, Any]:
        """Give the mapping that a topology file holds, with every link one way and every number exact."""
        document: dict[str, Any] = {"name": self.name, "ranks": list(self.ranks)}
        document["switches"] = [_switch_document(switch) for switch in self.switches]
        if self.hosts:
            document["hosts"] = {host: list(ranks) for host, ranks in self.hosts.items()}
        document["links"] = [_link_document(link) for link in self.links]
        return document

    def save(self, path: str | Path) -> None:
        """Write a topology file in JSON that `load` reads back to an equal topology."""
        write_atomically(Path(path), json.dumps(self.to_document(), indent=1).encode())


def check_name(name: object, what: str) -> None:
    """Raise TopologyError unless `name` can stand in a line of text, wherever it is shown."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        shown = repr(name)[:60]
        raise TopologyError(f"{shown} is no {what} name; use 1 to {LONGEST_NAME} printable characters")


def check_nodes(names: tuple[str, ...]) -> None:
    """Raise TopologyError unless the names are distinct, printable and not too many."""
    if len(names) > MOST_NODES:
        raise TopologyError(f"{len(names)} nodes are more than the {MOST_NODES} that a topology may have")
    for name in names:
        check_name(name, "node")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise TopologyError(f"the node name {listed(twice)} is used twice; give each rank and switch its own name")


def check_hosts(hosts: Mapping[str, Iterable[str]], ranks: tuple[str, ...]) -> None:
    """Raise TopologyError unless there is a rank and each host holds ranks that no other host holds."""
    if not ranks:
        raise TopologyError("the topology has no ranks; name the compute nodes in rank order under ranks")
    home: dict[str, str] = {}
    known = set(ranks)
    for host, members in hosts.items():
        check_name(host, "host")
        for rank in members:
            if rank not in known:
                raise TopologyError(f"host {host} holds {rank!r}, which is not among the ranks")
            if rank in home:
                raise TopologyError(f"rank {rank} is in host {home[rank]} and in host {host}; keep it in one")
            home[rank] = host


def check_link(link: Link, known: Mapping[str, int]) -> None:
    """Raise TopologyError unless the link joins two known nodes at a bandwidth in (0, 10⁹] GB/s."""
    where = f"link {link.source} → {link.target}"
    for end in (link.source, link.target):
        if end not in known:
            raise TopologyError(f"{where}: {end!r} is neither among the ranks nor among the switches")
    if link.source == link.target:
        raise TopologyError(f"{where} joins a node to itself; leave it out")
    if not 0 < _number(link.bandwidth, where) <= MOST_BANDWIDTH:
        raise TopologyError(f"{where}: bandwidth {_shown(link.bandwidth)} GB/s lies outside (0, 10⁹]")
    if link.latency is not None and not 0 <= _number(link.latency, where) <= MOST_LATENCY:
        raise TopologyError(f"{where}: latency {_shown(link.latency)} s lies outside [0, {MOST_LATENCY}]")


def _number(value: object, where: str) -> Fraction:
    try:
        return exact(value)
    except ValueError as error:
        raise TopologyError(f"{where}: {error}; give GB/s and seconds as 25, 24.6 or '13/3'") from error


def _shown(value: Fraction) -> str:
    return str(written(value))[:40]


def merged(links: Iterable[Link], indices: Mapping[str, int]) -> tuple[Link, ...]:
    """Add up parallel links (the largest of their latencies stays) and put them in node order."""
    sums: dict[tuple[int, int], Link] = {}
    for link in links:
        ends = indices[link.source], indices[link.target]
        other = sums.get(ends)
        bandwidth, latency = exact(link.bandwidth), None if link.latency is None else exact(link.latency)
        if other is not None:
            bandwidth += other.bandwidth
            latency = max((value for value in (latency, other.latency) if value is not None), default=None)
        sums[ends] = Link(link.source, link.target, bandwidth, latency)
    return tuple(sums[ends] for ends in sorted(sums))


def _switch_document(switch: Switch) -> str | dict[str, Any]:
    if not (switch.multicast or switch.reduces):
        return switch.name
    return {"name": switch.name, "multicast": switch.multicast, "reduces": switch.reduces}


def _link_document(link: Link) -> list[Any] | dict[str, Any]:
    if link.latency is None:
        return [link.source, link.target, written(link.bandwidth)]
    return {
        "from": link.source,
        "to": link.target,
        "bandwidth": written(link.bandwidth),
        "latency": written(link.latency),
    }
