"""Kinds of trees that share the links of a network: broadcast, reduce, or both mirrored; through plain switches or
through switches that copy or add.

Trees are described away from their root. A reduce tree is such a tree reversed, so its arcs run against the links
that it loads.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from comm_plans.topology import Topology

Arc = tuple[int, int]


@dataclass(frozen=True)
class Family:
    """Out-trees of one kind, by node index.

    operations: what each tree is used for, `broadcast`, `reduce` or both.
    arcs: (tail, head), away from the root.
    roots: where trees may start. terminals: what every tree reaches.
    plain: switches that neither copy nor add, so that no more leaves than enters.
    """

    operations: tuple[str, ...]
    arcs: tuple[Arc, ...]
    roots: tuple[int, ...]
    terminals: tuple[int, ...]
    plain: tuple[int, ...]

    def links(self, arc: Arc) -> tuple[Arc, ...]:
        """Links that a tree on this arc loads: the arc itself to broadcast, its reverse to reduce."""
        return tuple(arc if operation == "broadcast" else arc[::-1] for operation in self.operations)


def able_switches(topology: Topology, operations: Iterable[str]) -> tuple[int, ...]:
    """Switches that can be a vertex with several children in trees that serve all of these operations."""
    needs_copy, needs_sum = "broadcast" in operations, "reduce" in operations
    return tuple(
        topology.index(switch.name)
        for switch in topology.switches
        if (switch.multicast or not needs_copy) and (switch.reduces or not needs_sum)
    )


def is_mirrored(topology: Topology) -> bool:
    """Whether every tree can be used backwards as well: equal links both ways, switches that copy if they add."""
    links = topology.capacities
    both_ways = all(links.get((target, source)) == bandwidth for (source, target), bandwidth in links.items())
    return both_ways and all(switch.multicast == switch.reduces for switch in topology.switches)


def family(topology: Topology, operations: tuple[str, ...], spanning: tuple[int, ...] = ()) -> Family:
    """Trees that reach every rank and every switch of `spanning` (which must be able); other switches forward."""
    ranks = tuple(range(len(topology.ranks)))
    switches = range(len(ranks), len(topology.nodes))
    plain = tuple(switch for switch in switches if switch not in spanning)
    return Family(operations, _arcs(topology, operations), ranks, ranks + spanning, plain)


def relaxed_family(topology: Topology, operations: tuple[str, ...]) -> Family:
    """A superset of all trees: able switches may copy, add, start a tree or be left out, at will.

    Its rate is an upper bound; no plan need reach it.
    """
    ranks = tuple(range(len(topology.ranks)))
    able = able_switches(topology, operations)
    plain = tuple(switch for switch in range(len(ranks), len(topology.nodes)) if switch not in able)
    return Family(operations, _arcs(topology, operations), ranks + able, ranks, plain)


def plain_or_all(topology: Topology, operations: tuple[str, ...]) -> list[Family]:
    """Trees that let every switch forward only; and, where some are able, trees that meet in all able switches."""
    return [family(topology, operations, spanning) for spanning in sorted({(), able_switches(topology, operations)})]


def all_but_alike(topology: Topology, operations: tuple[str, ...]) -> list[Family]:
    """The families of `plain_or_all`, and trees that meet in one of several alike switches and in all of other kinds.

    One rail or spine is enough to join hosts that each add up inside, so such trees share rails and spines out.
    """
    kinds = _alike(topology, able_switches(topology, operations))
    spans = {
        tuple(sorted({switch}.union(*(other for other in kinds if other != kind)))) for kind in kinds for switch in kind
    }
    known = plain_or_all(topology, operations)
    return known + [new for spanning in sorted(spans) if (new := family(topology, operations, spanning)) not in known]


def _alike(topology: Topology, switches: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Switches grouped by the bandwidths of their links."""
    kinds: dict[tuple[Fraction, ...], list[int]] = {}
    for switch in switches:
        bandwidths = sorted(bandwidth for link, bandwidth in topology.capacities.items() if switch in link)
        kinds.setdefault(tuple(bandwidths), []).append(switch)
    return [tuple(kind) for kind in kinds.values()]


def _arcs(topology: Topology, operations: tuple[str, ...]) -> tuple[Arc, ...]:
    forward = "broadcast" in operations
    return tuple(sorted(link if forward else link[::-1] for link in topology.capacities))
