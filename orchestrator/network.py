"""Which network the ranks stand on, as it was named or as the nodes tell it, and which rank stands on which node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from comm_plans.errors import PlansError
from comm_plans.sources import topology_from
from comm_plans.topology import Link, Switch, Topology
from orchestrator.cluster.lab import LAB, lab_topology
from orchestrator.cluster.nodes import Node
from orchestrator.errors import UserError
from orchestrator.gpu_network import told_by_gpus

AUTO = "auto"
_INSIDE = Fraction(10)  # GB/s assumed between a rank and its own node's link: memory, not network
_UNKNOWN = Fraction(5, 4)  # GB/s assumed of a link that reports no speed: 10 Gbit/s

Speeds = Callable[[], Sequence[Fraction | None]]
Matrices = Callable[[], Sequence[str | None]]


@dataclass(frozen=True)
class Site:
    """A network with a rank for each worker. `pins`: a Ray resource for each that ties it to its node; empty: none."""

    topology: Topology
    pins: tuple[str, ...] = ()
    remark: str | None = None


def site(
    word: str,
    address: str,
    workers: int,
    cpus: float,
    nodes: Sequence[Node],
    speeds: Speeds,
    matrices: Matrices | None = None,
    elastic: bool = False,
) -> Site:
    """The network that `topology=word` means on this cluster. Raises UserError where it does not fit the cluster.

    address: the cluster's. cpus: of one worker. speeds: asks each node for its link's GB/s. matrices: asks each node
    what nvidia-smi says of its GPUs, where workers have some. elastic: hosts that are gone are left out.
    """
    if address == LAB and word == AUTO:
        lab = topology_from(lab_topology())
        return _pinned_by_name(_left(lab, nodes) if elastic else lab, nodes)
    if word == AUTO and matrices:
        topology, remark = told_by_gpus(
            workers, {node.address: told for node, told in zip(nodes, matrices(), strict=True)}
        )
        return replace(_on_hosts(topology, {node.address: node for node in nodes}), remark=remark)
    if word == AUTO:
        return _told_by_nodes(workers, cpus, nodes, speeds)
    return _placed(named(word, workers, nodes if elastic else ()), word, nodes)


def named(word: str, workers: int, only: Sequence[Node] = ()) -> Topology:
    """The network that `topology=word` names; `only` on these nodes, if there are any.

    Raises UserError where it is none, or not one of so many workers.
    """
    try:
        topology = _left(topology_from(word), only) if only else topology_from(word)
    except PlansError as error:
        raise UserError(f"topology={word}: {error}") from error
    if len(topology.ranks) != workers:
        raise UserError(
            f"topology={word} has {len(topology.ranks)} ranks and cluster.workers={workers}; make them equal"
        )
    return topology


def _left(topology: Topology, nodes: Sequence[Node]) -> Topology:
    """The network without the ranks whose hosts are gone, and without what ran through them; whole if none is known."""
    there = {name for node in nodes for name in (node.hostname, node.address, *node.resources)}
    host_of = {rank: host for host, ranks in topology.hosts.items() for rank in ranks}
    ranks = tuple(rank for rank in topology.ranks if there & {host_of.get(rank, rank), _rank_pin(rank)})
    if len(ranks) in (0, len(topology.ranks)):
        return topology
    kept = {*ranks, *(switch.name for switch in topology.switches)}
    links = tuple(link for link in topology.links if {link.source, link.target} <= kept)
    members = {host: tuple(rank for rank in members if rank in kept) for host, members in topology.hosts.items()}
    hosts = {host: present for host, present in members.items() if present}
    return Topology(topology.name, ranks, topology.switches, links, hosts)


def _placed(topology: Topology, word: str, nodes: Sequence[Node]) -> Site:
    """Tie ranks to nodes by rank names, by host names, or, for the hosts of a fabric, in order."""
    if all(any(_rank_pin(rank) in node.resources for node in nodes) for rank in topology.ranks):
        return _pinned_by_name(topology, nodes)
    by_name = {name: node for node in nodes for name in (node.hostname, node.address)}
    hosts = topology.hosts or {rank: (rank,) for rank in topology.ranks if rank in by_name}
    if hosts and all(host in by_name for host in hosts):
        return _on_hosts(topology, {host: by_name[host] for host in hosts})
    if len(nodes) == 1 and len(hosts) < 2:
        return Site(topology)
    if len(nodes) == len(hosts) and topology.name == word:
        return _on_hosts(topology, dict(zip(hosts, nodes, strict=True)))
    named = ", ".join(list(hosts)[:4]) or "no hosts"
    there = ", ".join(node.hostname for node in nodes[:4])
    raise UserError(
        f"topology={word} names the hosts {named}, and the cluster's nodes are {there}; "
        "write under `hosts` which ranks stand on which node, by hostname or address"
    )


def _on_hosts(topology: Topology, nodes: dict[str, Node]) -> Site:
    host_of = {rank: host for host, ranks in topology.hosts.items() for rank in ranks}
    if missing := [rank for rank in topology.ranks if host_of.get(rank, rank) not in nodes]:
        raise UserError(f"the topology does not say on which host {missing[0]} stands; add it under `hosts`")
    return Site(topology, tuple(nodes[host_of.get(rank, rank)].pin for rank in topology.ranks))


def _pinned_by_name(topology: Topology, nodes: Sequence[Node]) -> Site:
    """Ranks on the nodes that offer a resource of their name."""
    pins = tuple(_rank_pin(rank) for rank in topology.ranks)
    for pin in pins:
        if not any(pin in node.resources for node in nodes):
            raise UserError(f"no node of the cluster offers the resource {pin}; start the lab anew")
    return Site(topology, pins)


def _rank_pin(rank: str) -> str:
    return f"rank:{rank}"


def _told_by_nodes(workers: int, cpus: float, nodes: Sequence[Node], speeds: Speeds) -> Site:
    """One switch between the nodes, each on a link of the speed it reports; workers fill one node after the other."""
    places = [node for node in nodes for _ in range(int(node.resources.get("CPU", 0) // cpus))][:workers]
    used = [node for node in nodes if node in places]
    if len(used) < 2:
        raise UserError("topology=auto finds all workers on one machine, where there is no network to plan for")
    reported = dict(zip((node.address for node in nodes), speeds(), strict=True))
    ranks = tuple(f"rank{number}" for number in range(workers))
    links: list[Link] = []
    for node in used:
        links += _cable(node.address, "core", reported[node.address] or _UNKNOWN)
    for rank, node in zip(ranks, places, strict=True):
        links += _cable(rank, node.address, _INSIDE)
    hosts = {node.address: tuple(r for r, place in zip(ranks, places, strict=True) if place is node) for node in used}
    switches = (Switch("core"), *(Switch(node.address) for node in used))
    topology = Topology("auto", ranks, switches, tuple(links), hosts)
    return Site(topology, tuple(node.pin for node in places), _remark(used, reported))


def _cable(one: str, other: str, bandwidth: Fraction) -> list[Link]:
    return [Link(one, other, bandwidth), Link(other, one, bandwidth)]


def _remark(used: Sequence[Node], reported: dict[str, Fraction | None]) -> str:
    silent = [node.address for node in used if reported[node.address] is None]
    assumed = f"; {', '.join(silent[:4])} report no speed, {float(_UNKNOWN):g} GB/s was assumed" if silent else ""
    return f"topology=auto takes the {len(used)} nodes to hang on one switch{assumed}; name a file to say it better"
