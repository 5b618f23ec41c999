"""The networks that are measured, what is measured on them, and how fast that can be at best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from comm_plans.live import LivePlans
from comm_plans.plan import Plan, Tree
from comm_plans.topology import Topology
from comm_plans.verifier import verify

Row = dict[str, Any]
TOPOLOGIES = Path(__file__).parents[3] / "conf" / "topologies"
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")
MIB = 2**20
PAYLOAD = Fraction(8948, 9014)  # of a frame of 9000 bytes of IP, with Ethernet's header, that TCP carries
TORUS_RING = (0, 1, 2, 5, 3, 4, 7, 8, 6)  # each next to the one before, by a link that no other pair uses
SLOW_LINKS = ("h0-h1", "h0-h3")
SLOW_RATE = "10mbit"
SLOW_BANDWIDTH = Fraction("0.00125")


@dataclass(frozen=True)
class Case:
    """A network of the lab; `ring` is the order of a ring to compare with, where gloo's own is a bad one."""

    name: str
    file: Path
    ring: tuple[int, ...] | None = None

    @property
    def topology(self) -> Topology:
        """The network that the file describes."""
        return Topology.load(self.file)


CASES = (
    Case("star", TOPOLOGIES / "star.yaml"),
    Case("two_boxes", TOPOLOGIES / "two_boxes.yaml"),
    Case("torus", TOPOLOGIES / "torus3x3.yaml", TORUS_RING),
)


def bound_seconds(plan: Plan, size_bytes: int) -> float:
    """What no plan can beat: the network's optimum at the rate of the payload."""
    return payload_seconds(plan.optimum, size_bytes)


def payload_seconds(algbw: Fraction, size_bytes: int) -> float:
    """Seconds of a full buffer of so many bytes at `algbw` GB/s on the wire, of which TCP carries a part."""
    return float(size_bytes / (algbw * PAYLOAD * 10**9))


def plan_of(plans: LivePlans, collective: str) -> Plan:
    """The plan of a collective without a root."""
    return next(plan for plan in plans.plans if plan.collective == collective)


def degraded(topology: Topology) -> Topology:
    """The torus after two links at one rank have become slow."""
    document = topology.to_document()
    slow = [link.split("-") for link in SLOW_LINKS]
    for link in document["links"]:
        if link[:2] in slow or link[1::-1] in slow:
            link[2] = str(SLOW_BANDWIDTH)
    return Topology.from_document(document | {"name": f"{topology.name} degraded"})


def ring_plan(topology: Topology, order: Sequence[int]) -> LivePlans:
    """An all-reduce around a ring of direct links, the way libraries do it, as a plan."""
    ranks = len(order)
    share = Fraction(1, ranks)
    hops = [(order[place], order[(place + 1) % ranks]) for place in range(ranks)]
    trees = [
        Tree(operation, order[place], place * share, share, tuple(hops[(place + step) % ranks] for step in steps))
        for place in range(ranks)
        for operation, steps in (("reduce", range(1, ranks)), ("broadcast", range(ranks - 1)))
    ]
    algbw = min(topology.capacities[hop] for hop in hops) * Fraction(ranks, 2 * (ranks - 1))
    shards = (share,) * ranks
    plan = Plan("all_reduce", topology, tuple(trees), shards, algbw, optimal=False, optimum=algbw, method="ring")
    verify(plan.to_document())
    return LivePlans((plan,))
